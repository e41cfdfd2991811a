//! Values of attributes as calls give them.

use heirloom_mem::Tensor;
use heirloom_proto::attribute_proto::AttributeType as T;
use heirloom_proto::{AttributeProto, GraphProto};
use heirloom_types::{StringTensor, ValueType, strings_to_proto, tensor_to_proto};

use crate::Problem;

/// The value of an attribute, made from numbers, text, lists, tensors, bodies and types by `into()`.
///
/// Integers become INT, floats FLOAT (of 32 bits), `bool` INT 0 or 1; slices and arrays the list types.
#[derive(Clone, Debug)]
pub struct Attr(Given);

#[derive(Clone, Debug)]
enum Given {
    Value(AttributeProto),
    Tensor(Tensor),
}

impl Attr {
    /// A list of integers, an empty one too.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Attr {
        Attr::of(T::INTS, |proto| proto.ints_mut().extend(values))
    }

    /// A list of floats, an empty one too.
    pub fn floats(values: impl IntoIterator<Item = f32>) -> Attr {
        Attr::of(T::FLOATS, |proto| proto.floats_mut().extend(values))
    }

    /// A list of strings, an empty one too.
    pub fn strings<S: AsRef<[u8]>>(values: impl IntoIterator<Item = S>) -> Attr {
        Attr::of(T::STRINGS, |proto| proto.strings_mut().extend(values))
    }

    fn of(kind: T, set: impl FnOnce(&mut AttributeProto)) -> Attr {
        let mut proto = AttributeProto::new();
        proto.set_type(kind);
        set(&mut proto);
        Attr(Given::Value(proto))
    }

    /// The attribute's message.
    pub(super) fn into_proto(self, name: &str) -> Result<AttributeProto, Problem> {
        let mut proto = match self.0 {
            Given::Value(proto) => proto,
            Given::Tensor(tensor) => {
                let mut proto = AttributeProto::new();
                proto.set_type(T::TENSOR);
                proto.set_t(tensor_to_proto(&tensor, "")?);
                proto
            }
        };
        proto.set_name(name);
        Ok(proto)
    }
}

/// A reference to the attribute `to` of the function around.
pub(super) fn reference(name: &str, to: &str, kind: T) -> AttributeProto {
    let mut proto = AttributeProto::new();
    proto.set_name(name);
    proto.set_ref_attr_name(to);
    proto.set_type(kind);
    proto
}

macro_rules! from {
    ($($from:ty => $kind:ident, |$proto:ident, $value:ident| $set:expr;)*) => {$(
        impl From<$from> for Attr {
            fn from($value: $from) -> Attr {
                Attr::of(T::$kind, |$proto| $set)
            }
        }
    )*};
}
from! {
    i64 => INT, |proto, value| proto.set_i(value);
    i32 => INT, |proto, value| proto.set_i(value.into());
    bool => INT, |proto, value| proto.set_i(value.into());
    f32 => FLOAT, |proto, value| proto.set_f(value);
    f64 => FLOAT, |proto, value| proto.set_f(value as f32);
    &str => STRING, |proto, value| proto.set_s(value.as_bytes());
    String => STRING, |proto, value| proto.set_s(value.as_bytes());
    &[i64] => INTS, |proto, value| proto.ints_mut().extend(value.iter().copied());
    Vec<i64> => INTS, |proto, value| proto.ints_mut().extend(value);
    &[f32] => FLOATS, |proto, value| proto.floats_mut().extend(value);
    Vec<f32> => FLOATS, |proto, value| *proto.floats_mut() = value;
    &[&str] => STRINGS, |proto, value| proto.strings_mut().extend(value);
    Vec<String> => STRINGS, |proto, value| proto.strings_mut().extend(value);
    &StringTensor => TENSOR, |proto, value| proto.set_t(strings_to_proto(value, ""));
    GraphProto => GRAPH, |proto, value| proto.set_g(value);
    Vec<GraphProto> => GRAPHS, |proto, value| *proto.graphs_mut() = value;
    &ValueType => TYPE_PROTO, |proto, value| proto.set_tp(value.to_proto());
}

impl<const N: usize> From<[i64; N]> for Attr {
    fn from(values: [i64; N]) -> Attr {
        Attr::ints(values)
    }
}

impl<const N: usize> From<[i32; N]> for Attr {
    fn from(values: [i32; N]) -> Attr {
        Attr::ints(values.map(i64::from))
    }
}

impl<const N: usize> From<[f32; N]> for Attr {
    fn from(values: [f32; N]) -> Attr {
        Attr::floats(values)
    }
}

impl<const N: usize> From<[&str; N]> for Attr {
    fn from(values: [&str; N]) -> Attr {
        Attr::strings(values)
    }
}

impl From<&Tensor> for Attr {
    fn from(tensor: &Tensor) -> Attr {
        Attr(Given::Tensor(tensor.clone()))
    }
}

impl From<Tensor> for Attr {
    fn from(tensor: Tensor) -> Attr {
        Attr(Given::Tensor(tensor))
    }
}

/// A whole attribute message; its name is replaced by the call's.
impl From<AttributeProto> for Attr {
    fn from(proto: AttributeProto) -> Attr {
        Attr(Given::Value(proto))
    }
}
