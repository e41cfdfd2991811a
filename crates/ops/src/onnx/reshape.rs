//! [`Reshape`](https://onnx.ai/onnx/operators/onnx__Reshape.html): the same elements in another shape, their memory shared.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers;
use crate::movement::{reshape, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Reshape",
    versions: (5, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Reshape {
    /// Whether 0 is an extent, not "as in the input".
    allow_zero: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset >= 14 { &["allowzero"] } else { &[] })?;
    Ok(Box::new(Reshape { allow_zero: cx.node.attributes.int_or("allowzero", 0)? != 0 }))
}

impl Kernel for Reshape {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let wanted = integers::list(cx, 1)?;
        let shape = target(&from, &wanted, self.allow_zero)?;
        let value = reshape(cx, 0, &shape)?;
        cx.set(0, value);
        Ok(())
    }
}

/// The shape that `wanted` means for elements of shape `from`.
fn target(from: &[usize], wanted: &[i64], allow_zero: bool) -> Result<Shape, KernelError> {
    let unfit = || {
        let extents = wanted.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX));
        KernelError::Shape {
            what: "the elements do not fill the shape that is asked for",
            shapes: vec![Shape::from_slice(from), extents.collect()],
        }
    };
    let mut shape = Shape::new();
    let mut open = None;
    for (axis, &extent) in wanted.iter().enumerate() {
        shape.push(match extent {
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            0 if !allow_zero => *from.get(axis).ok_or_else(unfit)?,
            extent => usize::try_from(extent).map_err(|_| unfit())?,
        });
    }
    if let Some(axis) = open {
        let total: usize = from.iter().product();
        let known = heirloom_mem::element_count(&shape).filter(|&n| n != 0).ok_or_else(unfit)?;
        if !total.is_multiple_of(known) {
            return Err(unfit());
        }
        shape[axis] = total / known;
    }
    Ok(shape)
}
