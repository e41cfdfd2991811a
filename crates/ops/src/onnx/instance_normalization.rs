//! [`InstanceNormalization`](https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html): each plane of each instance
//! has its mean taken off and is divided by its deviation, then scaled and shifted by channel.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::reals::reals;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "InstanceNormalization",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct InstanceNormalization {
    epsilon: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 6 { &["consumed_inputs", "epsilon"] } else { &["epsilon"] })?;
    let epsilon = f64::from(cx.node.attributes.float_or("epsilon", 1e-5)?);
    Ok(Box::new(InstanceNormalization { epsilon }))
}

impl Kernel for InstanceNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => {
            let x = cx.dense(0)?;
            let &[_, channels, ref spatial @ ..] = x.shape() else {
                let shapes = vec![Shape::from_slice(x.shape())];
                return Err(KernelError::Shape { what: "the input is [batch, channels, …]", shapes });
            };
            normalize::<T>(cx, channels, channels, spatial.iter().product(), self.epsilon, |channel| channel)
        }, _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

/// Groups of channels are normalized together.
pub(crate) fn normalize<T: Real>(
    cx: &mut RunCx<'_>,
    channels: usize,
    groups: usize,
    plane: usize,
    epsilon: f64,
    parameter: impl Fn(usize) -> usize,
) -> Result<(), KernelError> {
    let (x, scale, bias) = (cx.dense(0)?, cx.dense(1)?, cx.dense(2)?);
    let (scales, biases) = (reals(cx, 1, &scale)?, reals(cx, 2, &bias)?);
    let needed = (0..channels).map(&parameter).max().map_or(0, |last| last + 1);
    if scales.len() != needed || biases.len() != needed {
        return Err(KernelError::Shape {
            what: "scale and bias have one element for each channel (or group)",
            shapes: [&x, &scale, &bias].map(|t| Shape::from_slice(t.shape())).into(),
        });
    }
    let mut out = cx.alloc(T::DTYPE, x.shape())?;
    let per_group = channels / groups.max(1);
    let len = (per_group * plane).max(1);
    let parts = out.elements_mut::<T>().chunks_exact_mut(len).zip(x.as_slice::<T>()?.chunks_exact(len));
    let mut watch = cx.cancel().watch();
    for (at, (to, from)) in parts.enumerate() {
        watch.pass(2 * len)?;
        let values = || from.iter().map(|v| v.widen().to_f64());
        let mean = values().sum::<f64>() / len as f64;
        let variance = values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / len as f64;
        let factor = 1.0 / (variance + epsilon).sqrt();
        let planes = to.chunks_exact_mut(plane.max(1)).zip(from.chunks_exact(plane.max(1)));
        for (channel, (to, from)) in planes.enumerate() {
            watch.pass(plane)?;
            let own = parameter(at % groups * per_group + channel);
            for (t, v) in to.iter_mut().zip(from) {
                let normal = (v.widen().to_f64() - mean) * factor;
                *t = T::narrow(T::Wide::from_f64(normal * scales[own] + biases[own]));
            }
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}
