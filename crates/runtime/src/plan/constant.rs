//! Values that are known when the session is made.

use std::sync::{Arc, OnceLock};

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{Ledger, Shape, Tensor};
use heirloom_types::{StringTensor, Value};

use crate::align;

/// A value that is the same in each call.
#[derive(Debug)]
pub(crate) struct Constant {
    value: Value,
    /// For a tensor that lies at an address where its elements cannot be read: an aligned copy, made at first use.
    aligned: Option<OnceLock<Value>>,
}

impl Constant {
    /// Looks at the address alone, never at the payload.
    pub(crate) fn new(value: Value) -> Constant {
        let aligned = match &value {
            Value::Tensor(tensor) if align::misaligned(tensor) => Some(OnceLock::new()),
            _ => None,
        };
        Constant { value, aligned }
    }

    /// The value as it is in the model.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// The value for a kernel to read: aligned. The copy that this may take is counted as a kernel's, once.
    pub(crate) fn get(&self, ledger: &Ledger) -> &Value {
        match (&self.aligned, &self.value) {
            (Some(aligned), Value::Tensor(tensor)) => {
                aligned.get_or_init(|| align::dense(tensor, ledger).into())
            }
            _ => &self.value,
        }
    }
}

/// The value of a `Constant` node; `None` where its attributes hold none that can be used.
pub(super) fn of_node(attributes: &Attributes) -> Option<Value> {
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
