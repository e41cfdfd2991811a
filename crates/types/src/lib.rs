//! Struct types, catalogue, byte layouts, encoded values and codecs.
#![forbid(unsafe_code)]

mod affine;
mod builder;
mod codec;
mod difference;
mod encoded;
mod error;
mod layout;
mod rules;
mod size;
mod struct_type;
mod value;
mod value_type;

pub use affine::Affine;
pub use builder::StructBuilder;
pub use codec::{Codec, CodecError};
pub use difference::Difference;
pub use encoded::{EncodedValue, Layout};
pub use error::{Fault, Faults, TensorError, TypeError};
pub use layout::StructLayout;
pub use struct_type::{Component, Constant, Content, Field, Kind, MAX_DEPTH, StructType};
pub use value::{MapKey, StringTensor, StructValue, TensorType, Value};
pub use value_type::{Dim, TensorSpec, ValueType};

pub use heirloom_proto::FunctionProto;
