//! [`BitwiseNot`](https://onnx.ai/onnx/operators/onnx__BitwiseNot.html): each bit of integers inverted.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{Plain, unary, wrong_type};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "BitwiseNot",
    versions: (18, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_integer),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [i64, i32, i16, i8, u64, u32, u16, u8], T => unary(cx, |v: T| !v),
        _ => Err(wrong_type(cx, 0, "integers")))
}
