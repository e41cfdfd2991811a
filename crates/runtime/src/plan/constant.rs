//! `Constant` nodes: their value is known when the session is made.

use std::sync::Arc;

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{Shape, Tensor};
use heirloom_types::{StringTensor, Value};

/// The value of a `Constant` node; `None` where its attributes hold none that can be used.
pub(crate) fn value(attributes: &Attributes) -> Option<Value> {
    let (name, value) = attributes.iter().next()?;
    let strings = |elements: &[Box<[u8]>], shape: Shape| {
        Value::Strings(Arc::new(StringTensor { shape, elements: Vec::from(elements) }))
    };
    let tensor = match (name, value) {
        ("value", AttrValue::Tensor(tensor)) => tensor.clone(),
        ("value", AttrValue::Strings1(tensor)) => return Some(Value::Strings(tensor.clone())),
        ("value_float", AttrValue::Float(value)) => Tensor::scalar(*value),
        ("value_int", AttrValue::Int(value)) => Tensor::scalar(*value),
        ("value_floats", AttrValue::Floats(values)) => {
            Tensor::from_vec(&[values.len()], values.clone()).ok()?
        }
        ("value_ints", AttrValue::Ints(values)) => Tensor::from_vec(&[values.len()], values.clone()).ok()?,
        ("value_string", AttrValue::String(value)) => {
            return Some(strings(std::slice::from_ref(value), Shape::new()));
        }
        ("value_strings", AttrValue::Strings(values)) => {
            return Some(strings(values, Shape::from_slice(&[values.len()])));
        }
        _ => return None,
    };
    Some(tensor.into())
}
