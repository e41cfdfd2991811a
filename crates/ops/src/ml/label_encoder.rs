//! [`LabelEncoder`](https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html): each element looked up in a table, or a
//! default.

use std::collections::HashMap;
use std::sync::Arc;

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{StringTensor, Value};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::numbers::Number;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "LabelEncoder",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// A list of labels.
enum Labels {
    Strings(Vec<Box<[u8]>>),
    Integers(DType, Vec<i64>),
    Reals(DType, Vec<f64>),
}

/// A label to look up: floats by their bits as DOUBLE, all NaNs alike.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    String(Box<[u8]>),
    Integer(i64),
    Real(u64),
}

fn real_key(value: f64) -> Key {
    // Both zeros are equal.
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    Key::Real(value.to_bits())
}

impl Labels {
    /// From one of the attributes `NAME_strings`, `NAME_int64s`, `NAME_floats`, `NAME_tensor` (or in the singular, for
    /// defaults).
    fn read(attributes: &Attributes, name: &str, plural: &str) -> Result<Option<Labels>, BuildError> {
        let full = |kind: &str| format!("{name}_{kind}{plural}");
        let single = plural.is_empty();
        let text = full("string");
        if single && let Some(value) = attributes.opt_string(&text)? {
            return Ok(Some(Labels::Strings(vec![Box::from(value)])));
        }
        if !single && let Some(values) = attributes.opt_strings(&text)? {
            return Ok(Some(Labels::Strings(Vec::from(values))));
        }
        let integers = full("int64");
        if single && let Some(value) = attributes.opt_int(&integers)? {
            return Ok(Some(Labels::Integers(DType::Int64, vec![value])));
        }
        if !single && let Some(values) = attributes.opt_ints(&integers)? {
            return Ok(Some(Labels::Integers(DType::Int64, Vec::from(values))));
        }
        let floats = full("float");
        if single && let Some(value) = attributes.opt_float(&floats)? {
            return Ok(Some(Labels::Reals(DType::Float, vec![f64::from(value)])));
        }
        if !single && let Some(values) = attributes.opt_floats(&floats)? {
            return Ok(Some(Labels::Reals(DType::Float, values.iter().map(|&v| f64::from(v)).collect())));
        }
        match attributes.get(&format!("{name}_tensor")) {
            Some(AttrValue::Strings1(strings)) => Ok(Some(Labels::Strings(strings.elements.clone()))),
            Some(AttrValue::Tensor(tensor)) => Labels::of_tensor(tensor)
                .map(Some)
                .ok_or_else(|| unsupported(&format!("{name}_tensor"), tensor.dtype(), "it holds no labels")),
            _ => Ok(None),
        }
    }

    fn of_tensor(tensor: &Tensor) -> Option<Labels> {
        let dtype = tensor.dtype();
        by_type!(dtype, [i64, i32, i16, i8, u32, u16, u8],
            T => Some(Labels::Integers(dtype, tensor.as_slice::<T>().ok()?.iter().map(|v| v.to_i64()).collect())),
            _ => by_type!(dtype, [f32, f64],
                T => Some(Labels::Reals(dtype, tensor.as_slice::<T>().ok()?.iter().map(|v| v.to_f64()).collect())),
                _ => None))
    }

    fn len(&self) -> usize {
        match self {
            Labels::Strings(list) => list.len(),
            Labels::Integers(_, list) => list.len(),
            Labels::Reals(_, list) => list.len(),
        }
    }

    fn keys(&self) -> Vec<Key> {
        match self {
            Labels::Strings(list) => list.iter().map(|s| Key::String(s.clone())).collect(),
            Labels::Integers(_, list) => list.iter().map(|&v| Key::Integer(v)).collect(),
            Labels::Reals(_, list) => list.iter().map(|&v| real_key(v)).collect(),
        }
    }
}

struct LabelEncoder {
    /// The place of each key's value; several tables in version 1, where both directions are in one.
    places: HashMap<Key, usize>,
    values: Labels,
    /// A list of one.
    default: Labels,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let attributes = &cx.node.attributes;
    if cx.opset < 2 {
        only(cx, &["classes_strings", "default_int64", "default_string"])?;
        return Ok(Box::new(Classes {
            classes: Vec::from(attributes.strings("classes_strings")?),
            number: attributes.int_or("default_int64", -1)?,
            text: attributes.opt_string("default_string")?.unwrap_or(b"_Unused").into(),
        }));
    }
    only(
        cx,
        &[
            "default_float",
            "default_int64",
            "default_string",
            "default_tensor",
            "keys_floats",
            "keys_int64s",
            "keys_strings",
            "keys_tensor",
            "values_floats",
            "values_int64s",
            "values_strings",
            "values_tensor",
        ],
    )?;
    let missing = |name: &str| BuildError::from(heirloom_graph::AttrError::Missing { name: name.into() });
    let keys = Labels::read(attributes, "keys", "s")?.ok_or_else(|| missing("keys_tensor"))?;
    let values = Labels::read(attributes, "values", "s")?.ok_or_else(|| missing("values_tensor"))?;
    if keys.len() != values.len() {
        return Err(unsupported("values", values.len(), &format!("there are {} keys", keys.len())));
    }
    // Only a default of the values' kind counts; others may be written without a meaning.
    let default = match &values {
        Labels::Strings(_) => {
            match (attributes.opt_string("default_string")?, attributes.get("default_tensor")) {
                (Some(text), _) => Labels::Strings(vec![text.into()]),
                (None, Some(AttrValue::Strings1(strings))) if strings.elements.len() == 1 => {
                    Labels::Strings(strings.elements.clone())
                }
                _ => Labels::Strings(vec![Box::from(&b"_Unused"[..])]),
            }
        }
        Labels::Integers(dtype, _) | Labels::Reals(dtype, _) => {
            let real = matches!(values, Labels::Reals(..));
            match attributes.opt_tensor("default_tensor")? {
                Some(tensor) => match Labels::of_tensor(tensor) {
                    Some(Labels::Integers(_, v)) if !real && v.len() == 1 => Labels::Integers(*dtype, v),
                    Some(Labels::Reals(_, v)) if real && v.len() == 1 => Labels::Reals(*dtype, v),
                    _ => {
                        return Err(unsupported(
                            "default_tensor",
                            tensor.dtype(),
                            "it is one of the values' type",
                        ));
                    }
                },
                None if real => {
                    Labels::Reals(*dtype, vec![f64::from(attributes.float_or("default_float", -0.0)?)])
                }
                None => Labels::Integers(*dtype, vec![attributes.int_or("default_int64", -1)?]),
            }
        }
    };
    let mut places = HashMap::new();
    for (at, key) in keys.keys().into_iter().enumerate() {
        places.entry(key).or_insert(at);
    }
    Ok(Box::new(LabelEncoder { places, values, default }))
}

/// The elements of input 0 as keys.
fn keys_of(cx: &RunCx<'_>) -> Result<(Shape, Vec<Key>), KernelError> {
    if let Some(Value::Strings(strings)) = cx.value(0) {
        return Ok((
            strings.shape.clone(),
            strings.elements.iter().map(|s| Key::String(s.clone())).collect(),
        ));
    }
    let x = cx.dense(0)?;
    let labels = Labels::of_tensor(&x).ok_or_else(|| wrong_type(cx, 0, "strings, integers or floats"))?;
    Ok((Shape::from_slice(x.shape()), labels.keys()))
}

impl Kernel for LabelEncoder {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, keys) = keys_of(cx)?;
        let places = keys.iter().map(|key| self.places.get(key).copied());
        match (&self.values, &self.default) {
            (Labels::Strings(values), Labels::Strings(default)) => {
                let elements = places.map(|at| at.map_or(&default[0], |at| &values[at]).clone()).collect();
                cx.set(0, Value::Strings(Arc::new(StringTensor { shape, elements })));
            }
            (Labels::Integers(dtype, values), Labels::Integers(_, default)) => {
                let mut out = cx.alloc(*dtype, &shape)?;
                by_type!(*dtype, [i64, i32, i16, i8, u32, u16, u8], T => {
                    for (o, at) in out.elements_mut::<T>().iter_mut().zip(places) {
                        *o = T::from_i64(at.map_or(default[0], |at| values[at]));
                    }
                }, _ => {});
                cx.set(0, out.freeze());
            }
            (Labels::Reals(dtype, values), Labels::Reals(_, default)) => {
                let mut out = cx.alloc(*dtype, &shape)?;
                by_type!(*dtype, [f32, f64], T => {
                    for (o, at) in out.elements_mut::<T>().iter_mut().zip(places) {
                        *o = T::from_f64(at.map_or(default[0], |at| values[at]));
                    }
                }, _ => {});
                cx.set(0, out.freeze());
            }
            _ => return Err(KernelError::Other("the default is of another type than the values".into())),
        }
        Ok(())
    }
}

/// Version 1: strings to their places in a list, or places to strings.
struct Classes {
    classes: Vec<Box<[u8]>>,
    number: i64,
    text: Box<[u8]>,
}

impl Kernel for Classes {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if let Some(Value::Strings(strings)) = cx.value(0) {
            let strings = strings.clone();
            let mut out = cx.alloc(DType::Int64, &strings.shape)?;
            for (o, text) in out.elements_mut::<i64>().iter_mut().zip(&strings.elements) {
                *o = self.classes.iter().position(|c| c == text).map_or(self.number, |at| at as i64);
            }
            cx.set(0, out.freeze());
            return Ok(());
        }
        let x = cx.dense(0)?;
        let class = |&at: &i64| usize::try_from(at).ok().and_then(|at| self.classes.get(at));
        let elements =
            x.as_slice::<i64>()?.iter().map(|at| class(at).unwrap_or(&self.text).clone()).collect();
        let shape = Shape::from_slice(x.shape());
        cx.set(0, Value::Strings(Arc::new(StringTensor { shape, elements })));
        Ok(())
    }
}
