//! [`Concat`](https://onnx.ai/onnx/operators/onnx__Concat.html): the inputs one behind the other along an axis. Where the
//! first input is a cache that can grow along the axis, the others are appended to it in place.

use std::sync::Arc;

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{StringTensor, Value};
use smallvec::SmallVec;

use crate::attributes::only;
use crate::elementwise::common_type;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Concat",
    versions: (4, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Concat {
    axis: i64,
    /// Input 0 is retained from the output: it is a cache from the first call on.
    cache: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    let cache = cx.inputs.first().and_then(Option::as_ref).is_some_and(|first| first.next == Some(0));
    Ok(Box::new(Concat { axis: cx.node.attributes.int("axis")?, cache }))
}

impl Kernel for Concat {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let count = cx.input_count();
        let first = shape_of(cx, 0)?;
        let axis = heirloom_runtime::normalize_axis(self.axis, first.len())?;
        let mut shape = first.clone();
        for index in 1..count {
            let other = shape_of(cx, index)?;
            let fits = other.len() == shape.len()
                && other.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
            if !fits {
                return Err(KernelError::Shape {
                    what: "inputs of a concatenation differ along its axis only",
                    shapes: vec![first, other],
                });
            }
            shape[axis] = shape[axis].checked_add(other[axis]).ok_or_else(|| KernelError::Shape {
                what: "a tensor of this shape is too large",
                shapes: vec![shape.clone(), other.clone()],
            })?;
        }
        let value = match cx.value(0) {
            Some(Value::Strings(_)) => strings(cx, &shape, axis)?,
            _ => tensors(cx, &shape, axis, self.cache)?,
        };
        cx.set(0, value);
        Ok(())
    }
}

/// Few inputs take no allocation.
type Parts = SmallVec<[Tensor; 4]>;

fn tensors(cx: &mut RunCx<'_>, shape: &[usize], axis: usize, cache: bool) -> Result<Value, KernelError> {
    let count = cx.input_count();
    let dtype = common_type(cx, count)?;
    let bytes = dtype.bit_width().is_some_and(|bits| bits % 8 == 0);
    if bytes && (cache || cx.tensor(0)?.append_view().is_some_and(|(_, at)| at == axis)) {
        return append(cx, shape, axis);
    }
    let mut parts = Parts::with_capacity(count);
    for index in 0..count {
        let part = cx.dense(index)?;
        if !part.is_empty() {
            parts.push(part);
        }
    }
    if let [part] = &parts[..] {
        return Ok(part.reshape(shape)?.into());
    }
    let bits = dtype.bit_width().map_or(8, |bits| bits as usize);
    let inner: usize = shape[axis + 1..].iter().product();
    let mut out = cx.alloc(dtype, shape)?;
    let run = |part: &Tensor| part.shape()[axis] * inner * bits;
    if parts.iter().any(|part| !run(part).is_multiple_of(8)) {
        return Err(KernelError::Other(format!(
            "{dtype} elements that fill no whole bytes cannot be joined"
        )));
    }
    let outer: usize = shape[..axis].iter().product();
    let runs = (0..outer).flat_map(|block| {
        parts.iter().map(move |part| {
            let len = run(part) / 8;
            &part.dense_bytes().unwrap_or(&[])[block * len..(block + 1) * len]
        })
    });
    crate::movement::fill(cx, out.bytes_mut(), runs)?;
    Ok(out.freeze().into())
}

/// The inputs after the first, behind the rows of the first.
fn append(cx: &mut RunCx<'_>, shape: &[usize], axis: usize) -> Result<Value, KernelError> {
    let dtype = cx.tensor(0)?.dtype();
    let rows = shape[axis] - cx.tensor(0)?.shape()[axis];
    let mut parts = Parts::with_capacity(cx.input_count() - 1);
    for index in 1..cx.input_count() {
        parts.push(cx.dense(index)?);
    }
    let mut slot = cx.append_dense(0, axis, rows)?;
    let (before, row) = (&shape[..axis], &shape[axis + 1..]);
    let outer: usize = before.iter().product();
    for run in 0..outer {
        let pieces = parts.iter().map(|part| {
            let bytes = part.dense_bytes().unwrap_or(&[]);
            let len = bytes.len() / outer;
            &bytes[run * len..(run + 1) * len]
        });
        slot.fill(run, pieces);
    }
    Ok(cx.commit(slot, dtype, before, row)?.into())
}

fn strings(cx: &RunCx<'_>, shape: &[usize], axis: usize) -> Result<Value, KernelError> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let mut parts = Vec::with_capacity(cx.input_count());
    for index in 0..cx.input_count() {
        match cx.value(index) {
            Some(Value::Strings(part)) => parts.push(part),
            other => {
                let actual = other.map_or("nothing", Value::kind).to_string();
                return Err(KernelError::InputType {
                    index,
                    expected: "strings, as input 0 is".into(),
                    actual,
                });
            }
        }
    }
    let mut elements = Vec::with_capacity(shape.iter().product());
    for block in 0..outer {
        for part in &parts {
            let len = part.shape[axis] * inner;
            elements.extend(part.elements[block * len..(block + 1) * len].iter().cloned());
        }
    }
    Ok(Value::Strings(Arc::new(StringTensor { shape: Shape::from_slice(shape), elements })))
}
