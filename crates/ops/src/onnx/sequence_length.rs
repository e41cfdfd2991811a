//! [`SequenceLength`](https://onnx.ai/onnx/operators/onnx__SequenceLength.html): the number of elements, as an INT64 scalar.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::sequences::elements;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceLength",
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
    let len = elements(cx, 0)?.len();
    let mut out = cx.alloc(DType::Int64, &[])?;
    out.elements_mut::<i64>()[0] = i64::try_from(len).unwrap_or(i64::MAX);
    cx.set(0, out.freeze());
    Ok(())
}
