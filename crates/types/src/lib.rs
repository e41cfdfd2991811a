//! Struct types, catalogue, byte layouts, encoded values and codecs.
//!
//! All data are little-endian, in files and in memory.
#![forbid(unsafe_code)]

#[cfg(not(target_endian = "little"))]
compile_error!("payloads are used in place, and they are little-endian");

mod affine;
pub mod bits;
mod builder;
mod catalogue;
mod codec;
mod column;
mod difference;
mod encoded;
mod error;
pub mod floats;
mod layout;
mod matching;
mod native;
mod path;
mod read_types;
mod record_error;
mod records;
mod registry;
mod rules;
mod size;
mod slot;
mod struct_type;
mod tensor_proto;
mod value;
mod value_type;
mod write_types;

pub use affine::{Affine, AffineError, DequantizeLinear, NBitWeights, NotAffine};
pub use builder::StructBuilder;
pub use catalogue::Catalogue;
pub use codec::{Codec, CodecError};
pub use difference::Difference;
pub use encoded::{EncodedType, EncodedValue, Layout};
pub use error::{Fault, Faults, TensorError, TypeError};
pub use layout::StructLayout;
pub use matching::{DimBindings, Mismatch};
pub use native::{Binding, BindingError, NativeField, NativeRecord};
pub use record_error::RecordError;
pub use records::{FieldView, Record, Records};
pub use registry::{CodecRegistry, RegistryError};
pub use slot::{ByteLayout, Leaf, Located, Slot, SlotDim, Step, parse_path};
pub use struct_type::{Component, Constant, Content, Field, Kind, MAX_DEPTH, StructType};
pub use tensor_proto::{
    constant_from_proto, strings_to_proto, tensor_from_proto, tensor_to_proto, value_from_proto,
};
pub use value::{MapKey, PayloadPart, StringTensor, StructValue, TensorType, Value};
pub use value_type::{Dim, TensorSpec, ValueType};

pub use heirloom_derive::NativeRecord;
pub use heirloom_proto::FunctionProto;

/// What the code of `#[derive(NativeRecord)]` names.
#[doc(hidden)]
pub mod derive {
    pub use crate::native::nested;
    pub use heirloom_mem::DType;
}
