//! [`Expand`](https://onnx.ai/onnx/operators/onnx__Expand.html): the input broadcast with a shape.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast;
use crate::elementwise::Plain;
use crate::integers;
use crate::movement::{View, dense_strides, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Expand",
    versions: (8, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let from = shape_of(cx, 0)?;
    let mut wanted = Shape::new();
    for &extent in &integers::list(cx, 1)? {
        wanted.push(integers::extent("an extent", extent)?);
    }
    let shape = broadcast::shape(&[&from, &wanted])?;
    let own = dense_strides(&from);
    let missing = shape.len() - from.len();
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(axis) if from[axis] != 1 => own[axis],
        _ => 0,
    };
    let strides = (0..shape.len()).map(stride).collect();
    let value = materialize(cx, 0, &View { shape, strides, base: 0 })?;
    cx.set(0, value);
    Ok(())
}
