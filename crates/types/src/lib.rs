//! Struct types, catalogue, byte layouts, encoded values and codecs.
#![forbid(unsafe_code)]

mod affine;
mod encoded;
mod layout;
mod value;

pub use affine::Affine;
pub use encoded::{EncodedValue, Layout};
pub use layout::StructLayout;
pub use value::{MapKey, StringTensor, StructValue, TensorType, Value};
