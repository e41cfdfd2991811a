//! [`BatchNormalization`](https://onnx.ai/onnx/operators/onnx__BatchNormalization.html): each channel (axis 1) shifted by a
//! mean and divided by a deviation, given or those of the batch itself, then scaled and shifted.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::reals::{reals, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "BatchNormalization",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct BatchNormalization {
    epsilon: f64,
    momentum: f64,
    training: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..7 => &["consumed_inputs", "epsilon", "is_test", "momentum", "spatial"],
            7..9 => &["epsilon", "momentum", "spatial"],
            9..14 => &["epsilon", "momentum"],
            _ => &["epsilon", "momentum", "training_mode"],
        },
    )?;
    let attributes = &cx.node.attributes;
    if attributes.int_or("spatial", 1)? == 0 {
        return Err(unsupported("spatial", 0, "means are those of channels"));
    }
    let outputs = cx.node.outputs.iter().flatten().count();
    let training = match cx.opset {
        ..7 => attributes.int_or("is_test", 0)? == 0,
        7..14 => outputs > 1,
        _ => attributes.int_or("training_mode", 0)? != 0,
    };
    // Before version 14 the extra outputs of a training run say less than they should, so only a lone output runs.
    if training && cx.opset < 14 && outputs > 1 {
        return Err(unsupported("training_mode", "(implied)", "before version 14 there is inference only"));
    }
    Ok(Box::new(BatchNormalization {
        epsilon: f64::from(attributes.float_or("epsilon", 1e-5)?),
        momentum: f64::from(attributes.float_or("momentum", 0.9)?),
        training: training && cx.opset >= 14,
    }))
}

impl Kernel for BatchNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => normalize::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

/// A list of real numbers of any type, one for each channel.
fn per_channel(cx: &RunCx<'_>, index: usize, channels: usize) -> Result<Vec<f64>, KernelError> {
    let list = cx.dense(index)?;
    if list.len() != channels {
        return Err(KernelError::Shape {
            what: "there is one element for each channel",
            shapes: vec![Shape::from_slice(list.shape()), Shape::from_elem(channels, 1)],
        });
    }
    reals(cx, index, &list)
}

fn normalize<T: Real>(cx: &mut RunCx<'_>, node: &BatchNormalization) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let &[batch, ref rest @ ..] = x.shape() else {
        return Err(KernelError::Shape { what: "the input has a batch axis", shapes: vec![Shape::new()] });
    };
    // A matrix without a channel axis has one channel.
    let (channels, plane) = match rest {
        [] => (1, 1),
        [channels, spatial @ ..] => (*channels, spatial.iter().product()),
    };
    let (scale, bias) = (per_channel(cx, 1, channels)?, per_channel(cx, 2, channels)?);
    let (mut mean, mut variance) = (per_channel(cx, 3, channels)?, per_channel(cx, 4, channels)?);
    let xs = x.as_slice::<T>()?;
    if node.training {
        let running = [mean.clone(), variance.clone()];
        for channel in 0..channels {
            cx.cancel().check()?;
            let of = |f: &dyn Fn(f64) -> f64| -> f64 {
                let planes = (0..batch).map(|n| &xs[(n * channels + channel) * plane..][..plane]);
                planes.flatten().map(|v| f(v.widen().to_f64())).sum::<f64>() / (batch * plane) as f64
            };
            mean[channel] = of(&|v| v);
            variance[channel] = of(&|v| (v - mean[channel]) * (v - mean[channel]));
        }
        for (at, (running, now)) in running.iter().zip([&mean, &variance]).enumerate() {
            if cx.wants(at + 1) {
                let mixed: Vec<f64> = running
                    .iter()
                    .zip(now)
                    .map(|(r, n)| r * node.momentum + n * (1.0 - node.momentum))
                    .collect();
                let dtype = cx.tensor(at + 3)?.dtype();
                let out = written(cx, dtype, &[channels], &mixed)?;
                cx.set(at + 1, out);
            }
        }
    }
    let mut out = cx.alloc(T::DTYPE, x.shape())?;
    let planes = out.elements_mut::<T>().chunks_exact_mut(plane.max(1)).zip(xs.chunks_exact(plane.max(1)));
    let mut watch = cx.cancel().watch();
    for (at, (to, from)) in planes.enumerate() {
        watch.pass(plane)?;
        let c = at % channels.max(1);
        let factor = scale[c] / (variance[c] + node.epsilon).sqrt();
        let (factor, shift) = (T::Wide::from_f64(factor), T::Wide::from_f64(bias[c] - mean[c] * factor));
        to.iter_mut().zip(from).for_each(|(t, v)| *t = T::narrow(v.widen() * factor + shift));
    }
    cx.set(0, out.freeze());
    Ok(())
}
