//! [`Neg`](https://onnx.ai/onnx/operators/onnx__Neg.html): `-x` of each element; integers wrap.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{Plain, unary, wrong_type};

use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Neg",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => real::<T>(cx), _ => integer(cx))
}

fn real<T: Real>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    unary(cx, |v: T| T::narrow(f(v.widen())))
}

fn f<W: std::ops::Neg<Output = W>>(v: W) -> W {
    -v
}

fn integer(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [i64, i32, i16, i8], T => unary(cx, T::wrapping_neg),
        _ => Err(wrong_type(cx, 0, "signed numbers")))
}
