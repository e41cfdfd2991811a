//! [`OptionalHasElement`](https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html): whether there is a value, as a BOOL scalar.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "OptionalHasElement",
    versions: (15, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let has = !matches!(cx.value(0), None | Some(Value::Optional(None)));
    let mut out = cx.alloc(DType::Bool, &[])?;
    out.bytes_mut().fill(u8::from(has));
    cx.set(0, out.freeze());
    Ok(())
}
