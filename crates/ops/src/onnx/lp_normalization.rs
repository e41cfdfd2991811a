//! [`LpNormalization`](https://onnx.ai/onnx/operators/onnx__LpNormalization.html): elements divided by their Lp norm along
//! an axis; where that is 0, the result is 0.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::lp_pool::{norm, p_of};
use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LpNormalization",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct LpNormalization {
    axis: i64,
    p: i32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "p"])?;
    Ok(Box::new(LpNormalization { axis: cx.node.attributes.int_or("axis", -1)?, p: p_of(cx)? }))
}

impl Kernel for LpNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => normalize::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn normalize<T: Real>(cx: &mut RunCx<'_>, node: &LpNormalization) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let shape = Shape::from_slice(x.shape());
    let axis = heirloom_runtime::normalize_axis(node.axis, shape.len())?;
    let inner: usize = shape[axis + 1..].iter().product();
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let len = (shape[axis] * inner).max(1);
    let parts = out.elements_mut::<T>().chunks_exact_mut(len).zip(x.as_slice::<T>()?.chunks_exact(len));
    let mut watch = cx.cancel().watch();
    for (to, from) in parts {
        for lane in 0..inner {
            watch.pass(2 * shape[axis])?;
            let places = (lane..len).step_by(inner);
            let norm = norm(places.clone().map(|at| from[at].widen().to_f64()), node.p);
            for at in places {
                let value = if norm == 0.0 { 0.0 } else { from[at].widen().to_f64() / norm };
                to[at] = T::narrow(T::Wide::from_f64(value));
            }
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}
