//! [`OptionalGetElement`](https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html): the value of an optional that has one; any
//! other value is itself.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "OptionalGetElement",
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
    let value = match cx.value(0) {
        None | Some(Value::Optional(None)) => {
            return Err(KernelError::Other(
                "the optional holds no value; ask `OptionalHasElement` first".into(),
            ));
        }
        Some(Value::Optional(Some(value))) => (**value).clone(),
        Some(value) => value.clone(),
    };
    cx.set(0, value);
    Ok(())
}
