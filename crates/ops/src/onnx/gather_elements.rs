//! [`GatherElements`](https://onnx.ai/onnx/operators/onnx__GatherElements.html): for each index, the element at its own place
//! but for one axis, where the index says; negative ones count from the end.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

use crate::attributes::only;
use crate::cells::pick;
use crate::movement::shape_of;
use crate::scatter::element_places;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GatherElements",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct GatherElements {
    axis: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(GatherElements { axis: cx.node.attributes.int_or("axis", 0)? }))
}

impl Kernel for GatherElements {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let axis = normalize_axis(self.axis, from.len())?;
        let shape = Shape::from_slice(cx.tensor(1)?.shape());
        let places = element_places(cx, &from, axis)?;
        let value = pick(cx, 0, &shape, &places, 1)?;
        cx.set(0, value);
        Ok(())
    }
}
