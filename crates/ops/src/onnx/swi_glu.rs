//! [`SwiGLU`](https://onnx.ai/onnx/operators/onnx__SwiGLU.html): `A * sigmoid(alpha * A) * B`, for A and B of one shape.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_real;
use crate::elementwise::{binary, common_type, wrong_type};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SwiGLU",
    versions: (28, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 2, crate::attributes::is_real),
    build,
};

struct SwiGlu {
    alpha: f32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha"])?;
    Ok(Box::new(SwiGlu { alpha: cx.node.attributes.float_or("alpha", 1.0)? }))
}

impl Kernel for SwiGlu {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let dtype = common_type(cx, 2)?;
        let (a, b) = (cx.tensor(0)?.shape(), cx.tensor(1)?.shape());
        if a != b {
            return Err(KernelError::Shape {
                what: "gate and value have one shape",
                shapes: vec![Shape::from_slice(a), Shape::from_slice(b)],
            });
        }
        by_real!(dtype, T => {
            let alpha = <T as Real>::Wide::from_f64(self.alpha.into());
            binary(cx, |a: T, b: T| {
                let gate = a.widen();
                T::narrow(gate / (<T as Real>::Wide::ONE + (-(alpha * gate)).exp()) * b.widen())
            })
        }, _ => Err(wrong_type(cx, 0, "floating-point numbers")))
    }
}
