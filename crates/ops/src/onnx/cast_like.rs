//! [`CastLike`](https://onnx.ai/onnx/operators/onnx__CastLike.html): each element as the type of another tensor's elements.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use super::cast::{Cast, Rounding};
use crate::attributes::only;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "CastLike",
    versions: (15, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct CastLike(Rounding);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..19 => &[],
            19..24 => &["saturate"],
            _ => &["saturate", "round_mode"],
        },
    )?;
    Ok(Box::new(CastLike(Rounding::of(cx)?)))
}

impl Kernel for CastLike {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let to = match cx.value(1) {
            Some(Value::Strings(_)) => DType::String,
            _ => cx.tensor(1)?.dtype(),
        };
        Cast { to, rounding: self.0 }.run(cx)
    }
}
