//! [`SequenceAt`](https://onnx.ai/onnx/operators/onnx__SequenceAt.html): one element, its memory shared.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::sequences::{elements, place};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceAt",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let elements = elements(cx, 0)?;
    let element = elements[place(cx, 1, elements.len())?].clone();
    cx.set(0, element);
    Ok(())
}
