//! [`SequenceConstruct`](https://onnx.ai/onnx/operators/onnx__SequenceConstruct.html): the inputs one after another.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceConstruct",
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
    let element = |index| cx.value(index).cloned().ok_or(KernelError::MissingInput { index });
    let elements = (0..cx.input_count()).map(element).collect::<Result<Vec<_>, _>>()?;
    cx.set(0, Value::Sequence(elements.into()));
    Ok(())
}
