//! [`RMSNormalization`](https://onnx.ai/onnx/operators/onnx__RMSNormalization.html): `x / sqrt(mean(x²) + epsilon) * scale`, the mean
//! over all axes from `axis` on.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::broadcast::Walk;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RMSNormalization",
    versions: (23, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct RmsNormalization {
    axis: i64,
    epsilon: f32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "epsilon", "stash_type"])?;
    let attributes = &cx.node.attributes;
    match attributes.int_or("stash_type", 1)? {
        1 => {}
        other => return Err(unsupported("stash_type", other, "the mean is computed in FLOAT, 1")),
    }
    let axis = attributes.int_or("axis", -1)?;
    Ok(Box::new(RmsNormalization { axis, epsilon: attributes.float_or("epsilon", 1e-5)? }))
}

impl Kernel for RmsNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => {
            by_type!(cx.tensor(1)?.dtype(), [f32, f16, bf16, f64], V => normalize::<T, V>(cx, self),
                _ => Err(wrong_type(cx, 1, "real numbers")))
        }, _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn normalize<T: Real, V: Real>(cx: &mut RunCx<'_>, node: &RmsNormalization) -> Result<(), KernelError> {
    let (x, scale) = (cx.dense(0)?, cx.dense(1)?);
    let shape = Shape::from_slice(x.shape());
    let axis = heirloom_runtime::normalize_axis(node.axis, shape.len())?;
    let tail = &shape[axis..];
    if *crate::broadcast::shape(&[tail, scale.shape()])? != *tail {
        return Err(KernelError::Shape {
            what: "the scale is broadcast to the normalized axes",
            shapes: vec![shape.clone(), Shape::from_slice(scale.shape())],
        });
    }
    let mut out = cx.alloc(V::DTYPE, &shape)?;
    let (scales, count) = (scale.as_slice::<V>()?, tail.iter().product::<usize>());
    let walk = Walk::new(tail, [scale.shape()]);
    let epsilon = T::Wide::from_f32(node.epsilon);
    let rows = x.as_slice::<T>()?.chunks_exact(count.max(1));
    let mut watch = cx.cancel().watch();
    for (to, row) in out.elements_mut::<V>().chunks_exact_mut(count.max(1)).zip(rows) {
        watch.pass(count)?;
        let mut sum = T::Wide::default();
        row.iter().for_each(|v| sum += v.widen() * v.widen());
        let factor = T::Wide::ONE / (sum / T::Wide::from_f64(count as f64) + epsilon).sqrt();
        walk.pieces(&mut watch, |at, [from], run| {
            for k in 0..run {
                // The normalized row takes the scale's type before it is scaled.
                let normal = V::narrow(V::Wide::from_f64((row[at + k].widen() * factor).to_f64()));
                to[at + k] = V::narrow(normal.widen() * scales[from + k * walk.step[0]].widen());
            }
        })?;
    }
    cx.set(0, out.freeze());
    Ok(())
}
