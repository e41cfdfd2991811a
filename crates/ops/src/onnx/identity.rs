//! [`Identity`](https://onnx.ai/onnx/operators/onnx__Identity.html): the input itself, its memory shared. Sessions leave
//! the node out; the kernel serves single calls.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Identity",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |_| true,
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
    cx.set(0, value);
    Ok(())
}
