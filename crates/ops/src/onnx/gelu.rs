//! [`Gelu`](https://onnx.ai/onnx/operators/onnx__Gelu.html): `x / 2 * (1 + erf(x / √2))` of each element, or with `approximate` =
//! `tanh`, `x / 2 * (1 + tanh(√(2 / π) * (x + 0.044715 x³)))`.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_real;
use crate::elementwise::{unary, wrong_type};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gelu",
    versions: (20, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_real),
    build,
};

struct Gelu {
    approximate: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["approximate"])?;
    match cx.node.attributes.opt_string("approximate")? {
        None | Some(b"none") => Ok(Box::new(Gelu { approximate: false })),
        Some(b"tanh") => Ok(Box::new(Gelu { approximate: true })),
        Some(other) => Err(unsupported("approximate", String::from_utf8_lossy(other), "none and tanh are")),
    }
}

impl Kernel for Gelu {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_real!(cx.tensor(0)?.dtype(), T => match self.approximate {
            true => unary(cx, |v: T| T::narrow(approximate(v.widen()))),
            false => unary(cx, |v: T| T::narrow(exact(v.widen()))),
        }, _ => Err(wrong_type(cx, 0, "floating-point numbers")))
    }
}

pub(crate) fn exact<W: Wide>(v: W) -> W {
    W::from_f64(0.5) * v * (W::ONE + (v * W::from_f64(std::f64::consts::FRAC_1_SQRT_2)).error_function())
}

pub(crate) fn approximate<W: Wide>(v: W) -> W {
    let inner = W::from_f64((2.0 / std::f64::consts::PI).sqrt()) * (v + W::from_f64(0.044_715) * v * v * v);
    W::from_f64(0.5) * v * (W::ONE + inner.tanh())
}
