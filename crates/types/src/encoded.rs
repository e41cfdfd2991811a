//! Encoded values: bytes in a declared layout, with the tensor they stand for.

use std::sync::Arc;

use heirloom_mem::Bytes;

use crate::{Affine, StructLayout, TensorType};

/// How the bytes of an encoded value are laid out.
#[derive(Clone, Debug)]
pub enum Layout {
    /// The built-in affine quantization (INT8 per tensor or axis, INT4 blockwise, …).
    Affine(Arc<Affine>),
    /// Records of a struct type.
    Struct(Arc<StructLayout>),
}

/// A validated encoded value. Its payload stays where it was loaded or mapped.
#[derive(Clone, Debug)]
pub struct EncodedValue {
    /// The value's name in its graph; empty for values that have none.
    pub name: String,
    /// How the bytes are laid out.
    pub layout: Layout,
    /// The tensor that the bytes decode to; absent for structs without tensor meaning.
    pub logical: Option<TensorType>,
    /// The records or codes.
    pub payload: Bytes,
}
