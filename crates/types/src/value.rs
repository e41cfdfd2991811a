//! Values: what flows along the edges of a graph and what a state retains.

use std::sync::Arc;

use heirloom_mem::{DType, Shape, Tensor};

use crate::EncodedValue;

/// The element type and concrete shape of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Shape,
}

/// A tensor of strings. Strings have no fixed width, so they are never state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringTensor {
    /// Extents, outermost first.
    pub shape: Shape,
    /// The elements in row-major order; ONNX strings are bytes, UTF-8 by convention.
    pub elements: Vec<Box<[u8]>>,
}

/// The fields of a struct value, in the order of its declaration. Each field keeps its own owner.
#[derive(Clone, Debug)]
pub struct StructValue {
    /// Name and value of each field that is not a constant.
    pub fields: Vec<(Arc<str>, Value)>,
}

impl StructValue {
    /// The field named `name`.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}

/// The keys of a map value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapKey {
    /// An integer key of any width.
    Int(i64),
    /// A string key.
    String(Box<str>),
}

/// A value. Cloning it copies handles, never payload bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A tensor of fixed-width elements.
    Tensor(Tensor),
    /// A tensor of strings.
    Strings(Arc<StringTensor>),
    /// Bytes in a declared layout, quantized for instance.
    Encoded(Arc<EncodedValue>),
    /// Named fields.
    Struct(Arc<StructValue>),
    /// Values one after another, of one type or (behind a category) of several.
    Sequence(Arc<Vec<Value>>),
    /// Values by key, sorted by key.
    Map(Arc<Vec<(MapKey, Value)>>),
    /// A value or none.
    Optional(Option<Arc<Value>>),
}

impl Value {
    /// The tensor, where the value is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// What kind of value this is, for messages: `tensor`, `encoded value`, …
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tensor(_) => "tensor",
            Value::Strings(_) => "string tensor",
            Value::Encoded(_) => "encoded value",
            Value::Struct(_) => "struct",
            Value::Sequence(_) => "sequence",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional",
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}
