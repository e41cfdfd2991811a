//! [`Size`](https://onnx.ai/onnx/operators/onnx__Size.html): the number of elements.

use heirloom_mem::Tensor;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Size",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let count = heirloom_mem::element_count(&shape_of(cx, 0)?).unwrap_or(0);
    cx.set(0, Tensor::scalar(i64::try_from(count).unwrap_or(i64::MAX)));
    Ok(())
}
