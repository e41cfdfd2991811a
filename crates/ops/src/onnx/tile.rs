//! [`Tile`](https://onnx.ai/onnx/operators/onnx__Tile.html): the tensor repeated along each axis.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{StringTensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::integers;
use crate::movement::{View, dense_strides, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Tile",
    versions: (6, super::NEWEST),
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
    let repeats = integers::list(cx, 1)?;
    if repeats.len() != from.len() {
        return Err(KernelError::Other(format!("{} repeats for {} axes", repeats.len(), from.len())));
    }
    // Each axis becomes two: its copies, which read the same elements again, and itself.
    let mut shape = Shape::new();
    let (mut axes, mut strides) = (Shape::new(), SmallVec::new());
    for ((&extent, &repeat), stride) in from.iter().zip(&repeats).zip(dense_strides(&from)) {
        let repeat = integers::extent("a repeat", repeat)?;
        shape.push(extent.checked_mul(repeat).ok_or(KernelError::TooLarge {
            what: "an extent",
            size: extent as u128 * repeat as u128,
            limit: usize::MAX as u128,
        })?);
        axes.extend([repeat, extent]);
        strides.extend([0, stride]);
    }
    let value = match materialize(cx, 0, &View { shape: axes, strides, base: 0 })? {
        Value::Tensor(tensor) => tensor.reshape(&shape)?.into(),
        Value::Strings(strings) => {
            let elements = strings.elements.clone();
            Value::Strings(Arc::new(StringTensor { shape, elements }))
        }
        other => other,
    };
    cx.set(0, value);
    Ok(())
}
