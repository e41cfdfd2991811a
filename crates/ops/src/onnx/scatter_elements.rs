//! [`ScatterElements`](https://onnx.ai/onnx/operators/onnx__ScatterElements.html): data with each update written to its own place but for
//! one axis, where the index says; negative ones count from the end.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

use crate::attributes::only;
use crate::movement::shape_of;
use crate::scatter::{Reduction, element_places, reduction, scatter};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ScatterElements",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ScatterElements {
    axis: i64,
    reduction: Reduction,
}

pub(crate) fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 16 { &["axis"] } else { &["axis", "reduction"] })?;
    Ok(Box::new(ScatterElements { axis: cx.node.attributes.int_or("axis", 0)?, reduction: reduction(cx)? }))
}

impl Kernel for ScatterElements {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let axis = normalize_axis(self.axis, shape.len())?;
        let places = element_places(cx, &shape, axis)?;
        let value = scatter(cx, 2, &places, 1, self.reduction)?;
        cx.set(0, value);
        Ok(())
    }
}
