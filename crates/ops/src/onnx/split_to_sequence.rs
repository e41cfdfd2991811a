//! [`SplitToSequence`](https://onnx.ai/onnx/operators/onnx__SplitToSequence.html): parts of a tensor along an axis as a
//! sequence: of one size, of the sizes of a list, or without either each element of the axis.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};
use heirloom_types::Value;

use crate::attributes::only;
use crate::integers::{self, Ints};
use crate::movement::{View, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SplitToSequence",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SplitToSequence {
    axis: i64,
    keep: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "keepdims"])?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(SplitToSequence {
        axis: attributes.int_or("axis", 0)?,
        keep: attributes.int_or("keepdims", 1)? != 0,
    }))
}

/// Parts of one size, the last one perhaps smaller.
fn equal(extent: i64, size: i64) -> Result<Ints, KernelError> {
    if size <= 0 {
        return Err(KernelError::Range { what: "the size of a part", value: size, low: 1, high: i64::MAX });
    }
    Ok((0..extent)
        .step_by(usize::try_from(size).unwrap_or(usize::MAX))
        .map(|at| size.min(extent - at))
        .collect())
}

impl Kernel for SplitToSequence {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let axis = normalize_axis(self.axis, shape.len())?;
        let extent = i64::try_from(shape[axis]).unwrap_or(i64::MAX);
        let scalar = cx.opt_tensor(1)?.map(|split| split.shape().is_empty());
        let sizes = match scalar {
            None => equal(extent, 1)?,
            Some(true) => equal(extent, integers::scalar(cx, 1, "the size of parts")?)?,
            Some(false) => integers::list(cx, 1)?,
        };
        let total = sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size).filter(|_| size >= 0));
        if total != Some(extent) {
            return Err(KernelError::Other(format!(
                "parts of sizes {:?} do not make up axis {axis} of {shape:?}",
                &sizes[..]
            )));
        }
        let mut parts: Vec<Value> = Vec::with_capacity(sizes.len());
        let mut first = 0;
        for &size in &sizes {
            let size = integers::extent("the size of a part", size)?;
            let mut view = View::whole(&shape);
            view.shape[axis] = size;
            view.base = if size == 0 { 0 } else { first * view.strides[axis].unsigned_abs() };
            if scalar.is_none() && !self.keep {
                view.shape.remove(axis);
                view.strides.remove(axis);
            }
            parts.push(materialize(cx, 0, &view)?);
            first += size;
        }
        cx.set(0, Value::Sequence(parts.into()));
        Ok(())
    }
}
