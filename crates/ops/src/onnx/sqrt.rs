//! [`Sqrt`](https://onnx.ai/onnx/operators/onnx__Sqrt.html): the square root of each element; NaN below 0.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{Plain, unary, wrong_type};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Sqrt",
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
    by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => real::<T>(cx), _ => Err(wrong_type(cx, 0, "real numbers")))
}

fn real<T: Real>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    unary(cx, |v: T| T::narrow(f(v.widen())))
}

fn f<W: Wide>(v: W) -> W {
    v.sqrt()
}
