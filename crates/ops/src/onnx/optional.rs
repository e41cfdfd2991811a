//! [`Optional`](https://onnx.ai/onnx/operators/onnx__Optional.html): the input as an optional value, or none where it is left out.

use std::sync::Arc;

use heirloom_graph::AttrValue;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::unsupported;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Optional",
    versions: (15, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    // `type` says what an absent value would be; it matters to inference alone.
    match cx
        .node
        .attributes
        .iter()
        .find(|(name, value)| *name != "type" || !matches!(value, AttrValue::Other(_)))
    {
        None => Ok(Box::new(Plain(run))),
        Some((name, _)) => Err(unsupported(name, "", "the operator has the attribute `type` alone")),
    }
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let value = cx.value(0).cloned().map(Arc::new);
    cx.set(0, Value::Optional(value));
    Ok(())
}
