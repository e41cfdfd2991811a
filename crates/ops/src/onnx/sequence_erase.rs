//! [`SequenceErase`](https://onnx.ai/onnx/operators/onnx__SequenceErase.html): the sequence without one element, by default the
//! last.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::sequences::{elements, place, take};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceErase",
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
    let at = match cx.value(1) {
        Some(_) => place(cx, 1, len)?,
        None => len
            .checked_sub(1)
            .ok_or_else(|| KernelError::Other("an empty sequence has no last element".into()))?,
    };
    let mut elements = take(cx, 0)?;
    elements.remove(at);
    cx.set(0, Value::Sequence(elements.into()));
    Ok(())
}
