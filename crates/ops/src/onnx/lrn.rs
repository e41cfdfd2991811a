//! [`LRN`](https://onnx.ai/onnx/operators/onnx__LRN.html): local response normalization: each element is divided by a power
//! of the sum of the squares of its neighbours in channels near its own.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LRN",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Lrn {
    alpha: f64,
    beta: f64,
    bias: f64,
    size: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha", "beta", "bias", "size"])?;
    let attributes = &cx.node.attributes;
    let size = attributes.int("size")?;
    let real = |name, default| attributes.float_or(name, default).map(f64::from);
    Ok(Box::new(Lrn {
        alpha: real("alpha", 1e-4)?,
        beta: real("beta", 0.75)?,
        bias: real("bias", 1.0)?,
        size: usize::try_from(size)
            .ok()
            .filter(|&s| s > 0)
            .ok_or_else(|| unsupported("size", size, "it is at least 1"))?,
    }))
}

impl Kernel for Lrn {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => normalize::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn normalize<T: Real>(cx: &mut RunCx<'_>, node: &Lrn) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let &[_, channels, ref spatial @ ..] = x.shape() else {
        let shapes = vec![Shape::from_slice(x.shape())];
        return Err(KernelError::Shape { what: "the input is [batch, channels, …]", shapes });
    };
    let plane: usize = spatial.iter().product();
    let mut out = cx.alloc(T::DTYPE, x.shape())?;
    let len = (channels * plane).max(1);
    let parts = out.elements_mut::<T>().chunks_exact_mut(len).zip(x.as_slice::<T>()?.chunks_exact(len));
    let mut watch = cx.cancel().watch();
    for (to, from) in parts {
        for channel in 0..channels {
            watch.pass(plane * 8)?;
            let first = channel.saturating_sub((node.size - 1) / 2);
            let last = (channel + node.size / 2).min(channels - 1);
            for at in 0..plane {
                let squares = (first..=last).map(|c| from[c * plane + at].widen().to_f64().powi(2));
                let sum: f64 = squares.sum();
                let base = node.bias + node.alpha / node.size as f64 * sum;
                let value = from[channel * plane + at].widen().to_f64() / base.powf(node.beta);
                to[channel * plane + at] = T::narrow(T::Wide::from_f64(value));
            }
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}
