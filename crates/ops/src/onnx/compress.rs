//! [`Compress`](https://onnx.ai/onnx/operators/onnx__Compress.html): the slices of an axis, or without one the elements, whose
//! condition holds; what lies beyond the conditions is left out.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

use crate::attributes::only;
use crate::cells::pick;
use crate::elementwise::bools;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Compress",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Compress {
    axis: Option<i64>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(Compress { axis: cx.node.attributes.opt_int("axis")? }))
}

impl Kernel for Compress {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let flat = Shape::from_slice(&[from.iter().product()]);
        let (from, axis) = match self.axis {
            Some(axis) => (from.clone(), normalize_axis(axis, from.len())?),
            None => (flat, 0),
        };
        let condition = cx.dense(1)?;
        let mut kept = Vec::new();
        let mut watch = cx.cancel().watch();
        for (at, &holds) in bools(&condition, 1)?.iter().enumerate().take(from[axis]) {
            watch.pass(1)?;
            if holds != 0 {
                kept.push(at);
            }
        }
        let (outer, run): (usize, usize) = (from[..axis].iter().product(), from[axis + 1..].iter().product());
        let mut starts = Vec::with_capacity(outer * kept.len());
        for block in 0..outer {
            for at in &kept {
                watch.pass(1)?;
                starts.push((block * from[axis] + at) * run);
            }
        }
        let mut shape = from.clone();
        shape[axis] = kept.len();
        let value = pick(cx, 0, &shape, &starts, run)?;
        cx.set(0, value);
        Ok(())
    }
}
