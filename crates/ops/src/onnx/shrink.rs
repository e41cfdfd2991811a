//! [`Shrink`](https://onnx.ai/onnx/operators/onnx__Shrink.html): `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_number;
use crate::elementwise::{unary, wrong_type};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Shrink",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_number),
    build,
};

struct Shrink {
    bias: f32,
    threshold: f32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["bias", "lambd"])?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(Shrink {
        bias: attributes.float_or("bias", 0.0)?,
        threshold: attributes.float_or("lambd", 0.5)?,
    }))
}

impl Kernel for Shrink {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (bias, threshold) = (f64::from(self.bias), f64::from(self.threshold));
        by_number!(cx.tensor(0)?.dtype(), T => unary(cx, |v: T| {
            let wide = v.up().to_f64();
            T::down(Scalar::from_f64(if wide < -threshold {
                wide + bias
            } else if wide > threshold {
                wide - bias
            } else {
                0.0
            }))
        }), _ => Err(wrong_type(cx, 0, "numbers")))
    }
}
