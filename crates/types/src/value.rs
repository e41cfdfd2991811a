//! Values: what flows along the edges of a graph and what a state retains.

use std::sync::Arc;

use heirloom_mem::{DType, RegionId, RegionKind, Shape, Storage, Tensor};

use crate::{EncodedValue, Layout, StructType, ValueType};

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

impl Value {
    /// The declared type that fits this value alone: concrete extents, the logical type of an encoded value that has
    /// one. [`ValueType::AnyStruct`] stands for what the value does not tell: the elements of an empty or mixed
    /// sequence or map, and the value of an empty optional.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::Tensor(tensor) => ValueType::tensor(tensor.dtype(), tensor.shape()),
            Value::Strings(strings) => ValueType::tensor(DType::String, &strings.shape),
            Value::Encoded(encoded) => match (&encoded.logical, &encoded.layout) {
                (Some(logical), _) => ValueType::Tensor(logical.into()),
                (None, Layout::Struct(layout)) => ValueType::Struct(layout.declaration.clone()),
                (None, Layout::Affine(_)) => ValueType::AnyStruct,
            },
            Value::Struct(fields) => {
                let builder = StructType::structure("");
                let fields = fields.fields.iter();
                let built =
                    fields.fold(builder, |b, (name, value)| b.typed(name, value.value_type())).build();
                built.map_or(ValueType::AnyStruct, ValueType::Struct)
            }
            Value::Sequence(elements) => ValueType::sequence(common_type(elements.iter())),
            Value::Map(entries) => {
                let string = matches!(entries.first(), Some((MapKey::String(_), _)));
                let key = if string { DType::String } else { DType::Int64 };
                ValueType::map(key, common_type(entries.iter().map(|(_, value)| value)))
            }
            Value::Optional(value) => ValueType::optional(common_type(value.iter().map(|v| &**v))),
        }
    }

    /// Whether strings hide anywhere in the value: elements, fields, map keys, and the constants and fields of the
    /// declarations that encoded values refer to. Such a value is never state.
    pub fn contains_strings(&self) -> bool {
        match self {
            Value::Tensor(_) => false,
            Value::Strings(_) => true,
            Value::Encoded(encoded) => {
                encoded.layout.as_struct().is_some_and(|layout| layout.declaration.contains_strings())
            }
            Value::Struct(fields) => fields.fields.iter().any(|(_, value)| value.contains_strings()),
            Value::Sequence(elements) => elements.iter().any(Value::contains_strings),
            Value::Map(entries) => entries
                .iter()
                .any(|(key, value)| matches!(key, MapKey::String(_)) || value.contains_strings()),
            Value::Optional(value) => value.as_ref().is_some_and(|value| value.contains_strings()),
        }
    }

    /// Calls `f` with each stretch of payload memory that the value refers to, in order. Strings are none.
    pub fn for_each_payload(&self, f: &mut dyn FnMut(PayloadPart<'_>)) {
        self.payloads_at("", f);
    }

    fn payloads_at(&self, path: &str, f: &mut dyn FnMut(PayloadPart<'_>)) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match self {
            Value::Tensor(tensor) => f(PayloadPart::of(path, tensor)),
            Value::Strings(_) => {}
            Value::Encoded(encoded) => {
                let payload = &encoded.payload;
                f(PayloadPart {
                    path,
                    region: payload.region_id(),
                    kind: payload.kind(),
                    address: payload.address(),
                    bytes: payload.len(),
                });
                if let Layout::Affine(affine) = &encoded.layout {
                    f(PayloadPart::of(&below("scale"), &affine.scale));
                    if let Some(zero_point) = &affine.zero_point {
                        f(PayloadPart::of(&below("zero_point"), zero_point));
                    }
                }
            }
            Value::Struct(fields) => {
                fields.fields.iter().for_each(|(name, value)| value.payloads_at(&below(name), f));
            }
            Value::Sequence(elements) => {
                let elements = elements.iter().enumerate();
                elements.for_each(|(i, value)| value.payloads_at(&format!("{path}[{i}]"), f));
            }
            Value::Map(entries) => {
                entries.iter().for_each(|(key, value)| value.payloads_at(&format!("{path}[{key}]"), f));
            }
            Value::Optional(value) => {
                if let Some(value) = value {
                    value.payloads_at(path, f);
                }
            }
        }
    }

    /// Bytes of all payloads that the value refers to.
    pub fn payload_bytes(&self) -> usize {
        let mut bytes = 0usize;
        self.for_each_payload(&mut |part| bytes = bytes.saturating_add(part.bytes));
        bytes
    }
}

/// The type of all values, where they have one.
fn common_type<'a>(mut values: impl Iterator<Item = &'a Value>) -> ValueType {
    let Some(first) = values.next().map(Value::value_type) else { return ValueType::AnyStruct };
    if values.all(|value| value.value_type() == first) { first } else { ValueType::AnyStruct }
}

/// A stretch of payload memory that a value refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadPart<'a> {
    /// Which part of the value, such as `blocks[3].keys`; empty for the value itself.
    pub path: &'a str,
    /// The region it lies in, to prove that two values share memory.
    pub region: RegionId,
    /// Where the region lives.
    pub kind: RegionKind,
    /// The address of the first element.
    pub address: usize,
    /// Bytes of the elements, gaps between them left out.
    pub bytes: usize,
}

impl<'a> PayloadPart<'a> {
    fn of(path: &'a str, tensor: &Tensor) -> PayloadPart<'a> {
        let kind = match tensor.storage() {
            Storage::Dense(bytes) | Storage::Strided { bytes, .. } => bytes.kind(),
            Storage::Append { .. } => RegionKind::Append,
        };
        let (region, address) = (tensor.region_id(), tensor.address());
        PayloadPart { path, region, kind, address, bytes: tensor.byte_len() }
    }
}

impl std::fmt::Display for MapKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MapKey::Int(key) => write!(f, "{key}"),
            MapKey::String(key) => write!(f, "{key:?}"),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}
