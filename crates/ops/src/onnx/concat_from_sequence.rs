//! [`ConcatFromSequence`](https://onnx.ai/onnx/operators/onnx__ConcatFromSequence.html): the tensors of a sequence one behind
//! the other along an axis, or stacked along a new one.

use heirloom_mem::{Shape, Tensor, copy};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};
use heirloom_types::Value;

use crate::attributes::only;
use crate::cells::strings;
use crate::sequences::elements;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ConcatFromSequence",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ConcatFromSequence {
    axis: i64,
    new_axis: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "new_axis"])?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(ConcatFromSequence {
        axis: attributes.int("axis")?,
        new_axis: attributes.int_or("new_axis", 0)? != 0,
    }))
}

fn shape_of(value: &Value) -> Result<Shape, KernelError> {
    match value {
        Value::Tensor(tensor) => Ok(Shape::from_slice(tensor.shape())),
        Value::Strings(strings) => Ok(strings.shape.clone()),
        other => Err(KernelError::InputType {
            index: 0,
            expected: "a sequence of tensors".into(),
            actual: format!("sequence that holds a {}", other.kind()),
        }),
    }
}

impl Kernel for ConcatFromSequence {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let parts: Vec<Value> = Vec::from(elements(cx, 0)?);
        let mut shapes = parts.iter().map(shape_of).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = shapes.first() else {
            return Err(KernelError::Other("an empty sequence has no tensors to join".into()));
        };
        let axis = normalize_axis(self.axis, first.len() + usize::from(self.new_axis))?;
        if self.new_axis {
            if let Some(other) = shapes.iter().find(|shape| *shape != first) {
                let shapes = vec![first.clone(), other.clone()];
                return Err(KernelError::Shape { what: "tensors that are stacked have one shape", shapes });
            }
            shapes.iter_mut().for_each(|shape| shape.insert(axis, 1));
        }
        let mut shape = shapes[0].clone();
        for other in &shapes[1..] {
            let fits = other.len() == shape.len()
                && other.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
            if !fits {
                return Err(KernelError::Shape {
                    what: "inputs of a concatenation differ along its axis only",
                    shapes: vec![shape, other.clone()],
                });
            }
            shape[axis] += other[axis];
        }
        let runs: Vec<usize> = shapes.iter().map(|shape| shape[axis..].iter().product()).collect();
        let outer: usize = shape[..axis].iter().product();
        let value = join(cx, &parts, &runs, outer, &shape)?;
        cx.set(0, value);
        Ok(())
    }
}

/// `runs[i]` elements of each part in turn, `outer` times.
fn join(
    cx: &mut RunCx<'_>,
    parts: &[Value],
    runs: &[usize],
    outer: usize,
    shape: &[usize],
) -> Result<Value, KernelError> {
    if let Some(Value::Strings(_)) = parts.first() {
        let mut all = Vec::with_capacity(shape.iter().product());
        for block in 0..outer {
            for (part, &run) in parts.iter().zip(runs) {
                let Value::Strings(part) = part else { return Err(mixed()) };
                all.extend(part.elements[block * run..(block + 1) * run].iter().cloned());
            }
        }
        return Ok(strings(shape, all));
    }
    let mut tensors: Vec<Tensor> = Vec::with_capacity(parts.len());
    for part in parts {
        let Value::Tensor(tensor) = part else { return Err(mixed()) };
        if tensors.first().is_some_and(|first| first.dtype() != tensor.dtype()) {
            return Err(mixed());
        }
        tensors.push(copy::to_dense(tensor, copy::Purpose::Kernel, cx.ledger()));
    }
    let dtype = tensors[0].dtype();
    let bits = dtype.bit_width().map_or(8, |bits| bits as usize);
    if runs.iter().any(|run| !(run * bits).is_multiple_of(8)) {
        return Err(KernelError::Other(format!(
            "{dtype} elements that fill no whole bytes cannot be joined"
        )));
    }
    let mut out = cx.alloc(dtype, shape)?;
    let pieces = (0..outer).flat_map(|block| {
        tensors.iter().zip(runs).map(move |(tensor, run)| {
            let len = run * bits / 8;
            &tensor.dense_bytes().unwrap_or(&[])[block * len..(block + 1) * len]
        })
    });
    crate::movement::fill(cx, out.bytes_mut(), pieces)?;
    Ok(out.freeze().into())
}

fn mixed() -> KernelError {
    KernelError::Other("the tensors of the sequence have different types".into())
}
