//! [`Swish`](https://onnx.ai/onnx/operators/onnx__Swish.html): `x * sigmoid(alpha * x)` of each element.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{unary, wrong_type};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Swish",
    versions: (24, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Swish {
    alpha: f32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha"])?;
    Ok(Box::new(Swish { alpha: cx.node.attributes.float_or("alpha", 1.0)? }))
}

impl Kernel for Swish {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => swish::<T>(cx, self.alpha),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn swish<T: Real>(cx: &mut RunCx<'_>, alpha: f32) -> Result<(), KernelError> {
    let alpha = T::Wide::from_f32(alpha);
    unary(cx, |v: T| {
        let v = v.widen();
        T::narrow(v / (T::Wide::ONE + (-(alpha * v)).exp()))
    })
}
