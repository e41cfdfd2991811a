//! `ai.heirloom.Field`: one field of a struct.
//!
//! The attribute `path` holds a name for each step, none for the root. Of records it gives the leaves of all of them as a
//! tensor `[records, *every enclosing array or packing dimension, *field shape]`, codes of less than a byte widened to the
//! narrowest integers of 8, 16, 32 or 64 bits; of a constant `[1, *its shape]`. Of a struct value it passes the field on,
//! whatever it is, without a copy.

use std::sync::Arc;

use heirloom_graph::AttrValue;
use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{
    Constant, EncodedValue, Layout, Located, RecordError, Slot, StringTensor, StructLayout, Value, bits,
};

use crate::attributes::{only, unsupported};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.heirloom",
    op: "Field",
    versions: (1, i64::MAX),
    rank: 0,
    accepts: |cx| {
        cx.inputs.len() == 1 && !matches!(cx.constant(0), Some(Value::Tensor(_) | Value::Strings(_)))
    },
    build,
};

struct Field {
    path: Vec<Box<str>>,
    /// Where the field of a constant value lies, and for which declaration.
    place: Option<Place>,
}

enum Place {
    Slot(Slot),
    Constant(Value),
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["path"])?;
    let names = match cx.node.attributes.get("path") {
        None => &[][..],
        Some(AttrValue::Strings(names)) => names,
        Some(other) => return Err(unsupported("path", format!("{other:?}"), "it holds strings")),
    };
    let shown = || names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(".");
    let path: Result<Vec<Box<str>>, _> =
        names.iter().map(|name| std::str::from_utf8(name).map(Box::from)).collect();
    let path = path.map_err(|_| unsupported("path", shown(), "names are UTF-8"))?;
    let place = match cx.constant(0) {
        Some(Value::Encoded(value)) => {
            let Layout::Struct(layout) = &value.layout else {
                return Err(unsupported("path", shown(), "affine codes have no fields"));
            };
            Some(place(layout, &path).map_err(|error| unsupported("path", shown(), &error.to_string()))?)
        }
        _ => None,
    };
    Ok(Box::new(Field { path, place }))
}

fn place(layout: &StructLayout, path: &[Box<str>]) -> Result<Place, RecordError> {
    Ok(match layout.declaration.locate_names(path)? {
        Located::Slot(slot) => Place::Slot(slot),
        Located::Constant(constant) => Place::Constant(in_front(constant)),
    })
}

/// A constant as `[1, *its shape]`.
fn in_front(constant: &Constant) -> Value {
    let mut shape = Shape::from_slice(&[1]);
    shape.extend_from_slice(constant.shape());
    match constant {
        Constant::Strings(strings) => {
            let elements = strings.elements.clone();
            Value::Strings(Arc::new(StringTensor { shape, elements }))
        }
        Constant::Tensor(tensor) => Value::Tensor(widened(tensor, &shape)),
    }
}

/// The tensor in another shape of as many elements, integers of less than a byte as whole bytes.
fn widened(tensor: &Tensor, shape: &[usize]) -> Tensor {
    let (dtype, width, signed) = match tensor.dtype() {
        DType::Uint4 => (DType::Uint8, 4, false),
        DType::Uint2 => (DType::Uint8, 2, false),
        DType::Int4 => (DType::Int8, 4, true),
        DType::Int2 => (DType::Int8, 2, true),
        _ => return tensor.reshape(shape).expect("constants are dense"),
    };
    let mut codes = vec![0u8; tensor.len()];
    bits::unpack(tensor.dense_bytes().unwrap_or(&[]), width, 0, &mut codes);
    if signed {
        let shift = 8 - width;
        codes.iter_mut().for_each(|code| *code = (((*code << shift) as i8) >> shift).cast_unsigned());
    }
    Tensor::new(dtype, shape, heirloom_mem::Bytes::from_vec(codes)).expect("one byte for each element")
}

impl Kernel for Field {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
        let field = field(cx, &value, &self.path, self.place.as_ref())?;
        cx.set(0, field);
        Ok(())
    }
}

fn field(
    cx: &RunCx<'_>,
    value: &Value,
    path: &[Box<str>],
    known: Option<&Place>,
) -> Result<Value, KernelError> {
    match value {
        Value::Encoded(encoded) => of_records(cx, encoded, path, known),
        Value::Struct(fields) => {
            let Some((name, rest)) = path.split_first() else { return Ok(value.clone()) };
            match fields.field(name) {
                Some(inner) if rest.is_empty() => Ok(inner.clone()),
                Some(inner) => field(cx, inner, rest, None),
                None => {
                    let names: Vec<_> = fields.fields.iter().map(|(name, _)| format!("`{name}`")).collect();
                    let names = names.join(", ");
                    Err(KernelError::Other(format!("the struct has no field `{name}`; it has {names}")))
                }
            }
        }
        other => Err(KernelError::InputType {
            index: 0,
            expected: "a struct or an encoded value of a struct type".into(),
            actual: other.kind().into(),
        }),
    }
}

fn of_records(
    cx: &RunCx<'_>,
    value: &EncodedValue,
    path: &[Box<str>],
    known: Option<&Place>,
) -> Result<Value, KernelError> {
    let other = |error: RecordError| KernelError::Other(error.to_string());
    let (Some(layout), Some(records)) = (value.layout.as_struct(), value.records()) else {
        return Err(KernelError::Other("affine codes have no fields".into()));
    };
    let found;
    let place = match known {
        Some(known) => known,
        None => {
            found = place(layout, path).map_err(other)?;
            &found
        }
    };
    match place {
        Place::Constant(constant) => Ok(constant.clone()),
        Place::Slot(slot) => {
            let width = slot.leaf.bit_width().next_power_of_two().max(8) / 8;
            let elements = slot.elements().and_then(|n| n.checked_mul(records.len() as u64));
            let bytes = elements.and_then(|n| usize::try_from(n.checked_mul(width.into())?).ok());
            cx.check_memory(bytes.unwrap_or(usize::MAX))?;
            records.column(slot, cx.ledger()).map(Value::Tensor).map_err(other)
        }
    }
}
