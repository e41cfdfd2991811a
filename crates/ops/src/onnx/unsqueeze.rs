//! [`Unsqueeze`](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html): the tensor with more axes of extent 1.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers::{self, Ints};
use crate::movement::{reshape, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Unsqueeze",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Unsqueeze {
    /// Before version 13 the axes are an attribute.
    axes: Option<Ints>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 13 { &["axes"] } else { &[] })?;
    Ok(Box::new(Unsqueeze { axes: cx.node.attributes.opt_ints("axes")?.map(Ints::from_slice) }))
}

impl Kernel for Unsqueeze {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let list = match &self.axes {
            Some(axes) => axes.clone(),
            None => integers::list(cx, 1)?,
        };
        let axes = integers::axes(&list, from.len() + list.len())?;
        let mut extents = from.iter().copied();
        let rank = from.len() + axes.len();
        let shape: Shape = (0..rank)
            .map(|axis| if axes.contains(&axis) { 1 } else { extents.next().unwrap_or(1) })
            .collect();
        let value = reshape(cx, 0, &shape)?;
        cx.set(0, value);
        Ok(())
    }
}
