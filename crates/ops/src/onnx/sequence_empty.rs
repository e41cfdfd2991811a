//! [`SequenceEmpty`](https://onnx.ai/onnx/operators/onnx__SequenceEmpty.html): no elements. The element type matters to
//! inference alone.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceEmpty",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["dtype"])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    cx.set(0, Value::Sequence(Vec::new().into()));
    Ok(())
}
