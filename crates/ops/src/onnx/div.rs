//! [`Div`](https://onnx.ai/onnx/operators/onnx__Div.html): `A / B`, broadcast; integers are truncated toward zero.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::by_type::by_type;
use crate::elementwise::{Arithmetic, Meeting, common_type, meet, wrong_type};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Div",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(Arithmetic { meeting: Meeting::build(cx)?, run }))
}

fn run(cx: &mut RunCx<'_>, meeting: Meeting) -> Result<(), KernelError> {
    by_type!(common_type(cx, 2)?, [f32, f16, bf16, f64], T => {
        return meet(cx, meeting, |a: T, b: T| T::narrow(a.widen() / b.widen()));
    }, _ => {});
    by_type!(common_type(cx, 2)?, [i64, i32, i16, i8, u64, u32, u16, u8], T => {
        if cx.dense(1)?.as_slice::<T>()?.contains(&0) {
            return Err(KernelError::Other("an integer is divided by zero".into()));
        }
        meet(cx, meeting, T::wrapping_div)
    }, _ => Err(wrong_type(cx, 0, "numbers")))
}
