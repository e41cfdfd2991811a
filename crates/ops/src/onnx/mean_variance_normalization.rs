//! [`MeanVarianceNormalization`](https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html):
//! `(x - mean) / sqrt(variance + 1e-9)`, mean and variance over some axes.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast::Walk;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{self, Ints};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MeanVarianceNormalization",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MeanVarianceNormalization {
    axes: Ints,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axes"])?;
    let axes = cx.node.attributes.opt_ints("axes")?.unwrap_or(&[0, 2, 3]);
    Ok(Box::new(MeanVarianceNormalization { axes: Ints::from_slice(axes) }))
}

impl Kernel for MeanVarianceNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => normalize::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn normalize<T: Real>(cx: &mut RunCx<'_>, node: &MeanVarianceNormalization) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let axes = integers::axes(&node.axes, x.shape().len())?;
    let kept: Shape =
        x.shape().iter().enumerate().map(|(at, &d)| if axes.contains(&at) { 1 } else { d }).collect();
    let groups: usize = kept.iter().product();
    let xs = x.as_slice::<T>()?;
    let (walk, cancel) = (Walk::new(x.shape(), [&kept]), cx.cancel());
    let count = (xs.len() / groups.max(1)) as f64;
    let each = |f: &mut dyn FnMut(usize, usize)| {
        walk.pieces(&mut cancel.watch(), |at, [group], run| {
            (0..run).for_each(|i| f(at + i, group + i * walk.step[0]));
        })
    };
    let (mut means, mut variances) = (vec![0.0; groups], vec![0.0; groups]);
    each(&mut |at, group| means[group] += xs[at].widen().to_f64() / count)?;
    each(&mut |at, group| variances[group] += (xs[at].widen().to_f64() - means[group]).powi(2) / count)?;
    let mut out = cx.alloc(T::DTYPE, x.shape())?;
    let to = out.elements_mut::<T>();
    each(&mut |at, group| {
        let value = (xs[at].widen().to_f64() - means[group]) / (variances[group] + 1e-9).sqrt();
        to[at] = T::narrow(T::Wide::from_f64(value));
    })?;
    cx.set(0, out.freeze());
    Ok(())
}
