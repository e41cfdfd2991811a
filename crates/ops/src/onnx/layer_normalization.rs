//! [`LayerNormalization`](https://onnx.ai/onnx/operators/onnx__LayerNormalization.html): over all axes from `axis` on, the
//! mean is taken off and the rest divided by the deviation, then scaled and shifted.

use half::{bf16, f16};
use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::broadcast::Walk;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::reals::{reals, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LayerNormalization",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct LayerNormalization {
    axis: i64,
    epsilon: f64,
    /// The type of the mean and the deviation.
    stash: DType,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "epsilon", "stash_type"])?;
    let attributes = &cx.node.attributes;
    let stash = attributes.int_or("stash_type", 1)?;
    let known = [DType::Float, DType::Float16, DType::BFloat16, DType::Double];
    let stash = known
        .into_iter()
        .find(|t| i64::from(t.onnx()) == stash)
        .ok_or_else(|| unsupported("stash_type", stash, "the mean is FLOAT, FLOAT16, BFLOAT16 or DOUBLE"))?;
    let epsilon = f64::from(attributes.float_or("epsilon", 1e-5)?);
    Ok(Box::new(LayerNormalization { axis: attributes.int_or("axis", -1)?, epsilon, stash }))
}

impl Kernel for LayerNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => normalize::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn normalize<T: Real>(cx: &mut RunCx<'_>, node: &LayerNormalization) -> Result<(), KernelError> {
    let (x, scale) = (cx.dense(0)?, cx.dense(1)?);
    let bias = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
    let shape = Shape::from_slice(x.shape());
    let axis = heirloom_runtime::normalize_axis(node.axis, shape.len())?;
    let tail = &shape[axis..];
    let bias_shape = bias.as_ref().map_or(&[][..], |b| b.shape());
    if *crate::broadcast::shape(&[tail, scale.shape(), bias_shape])? != *tail {
        return Err(KernelError::Shape {
            what: "scale and bias are broadcast to the normalized axes",
            shapes: vec![shape.clone(), Shape::from_slice(scale.shape()), Shape::from_slice(bias_shape)],
        });
    }
    let scales = reals(cx, 1, &scale)?;
    let biases = bias.as_ref().map_or(Ok(vec![0.0]), |b| reals(cx, 2, b))?;
    let count = tail.iter().product::<usize>().max(1);
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let walk = Walk::new(tail, [scale.shape(), bias_shape]);
    let (mut means, mut factors) = (Vec::new(), Vec::new());
    let rows = x.as_slice::<T>()?.chunks_exact(count);
    let mut watch = cx.cancel().watch();
    for (to, row) in out.elements_mut::<T>().chunks_exact_mut(count).zip(rows) {
        watch.pass(2 * count)?;
        let values = || row.iter().map(|v| v.widen().to_f64());
        let mean = values().sum::<f64>() / count as f64;
        let variance = values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count as f64;
        let factor = 1.0 / (variance + node.epsilon).sqrt();
        means.push(mean);
        factors.push(factor);
        walk.pieces(&mut watch, |at, [s, b], run| {
            for k in 0..run {
                let normal = (row[at + k].widen().to_f64() - mean) * factor;
                let value = normal * scales[s + k * walk.step[0]] + biases[b + k * walk.step[1]];
                to[at + k] = T::narrow(T::Wide::from_f64(value));
            }
        })?;
    }
    let kept: Shape = shape.iter().enumerate().map(|(at, &d)| if at < axis { d } else { 1 }).collect();
    cx.set(0, out.freeze());
    for (index, values) in [(1, means), (2, factors)] {
        if cx.wants(index) {
            let out = written(cx, node.stash, &kept, &values)?;
            cx.set(index, out);
        }
    }
    Ok(())
}
