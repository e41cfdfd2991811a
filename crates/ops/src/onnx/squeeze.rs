//! [`Squeeze`](https://onnx.ai/onnx/operators/onnx__Squeeze.html): the tensor without some of its axes of extent 1.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers::{self, Ints};
use crate::movement::{reshape, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Squeeze",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Squeeze {
    /// Before version 13 the axes are an attribute.
    axes: Option<Ints>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 13 { &["axes"] } else { &[] })?;
    Ok(Box::new(Squeeze { axes: cx.node.attributes.opt_ints("axes")?.map(Ints::from_slice) }))
}

impl Kernel for Squeeze {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let list = match &self.axes {
            Some(axes) => Some(axes.clone()),
            None => integers::opt_list(cx, 1)?,
        };
        let mut shape = Shape::new();
        match list {
            None => shape.extend(from.iter().copied().filter(|&extent| extent != 1)),
            Some(list) => {
                let axes = integers::axes(&list, from.len())?;
                if axes.iter().any(|&axis| from[axis] != 1) {
                    return Err(KernelError::Shape {
                        what: "only axes of extent 1 can be left out",
                        shapes: vec![from],
                    });
                }
                let kept = from.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
                shape.extend(kept.map(|(_, &extent)| extent));
            }
        }
        let value = reshape(cx, 0, &shape)?;
        cx.set(0, value);
        Ok(())
    }
}
