//! `LayerNormalization` and `Softmax` of FLOAT over the last axis.
#![allow(unsafe_code)]

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{Cancelled, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_simd::Isa;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::lanes::{self, for_level};

/// ONNX `LayerNormalization` over the last axis, its first output alone.
pub(crate) const LAYER_NORM: KernelSpec = KernelSpec {
    domain: "",
    op: "LayerNormalization",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| {
        cx.plain_inputs()
            && may_be_float(cx, 0)
            && may_be_float(cx, 1)
            && cx.node.outputs.iter().skip(1).all(Option::is_none)
    },
    build: |cx| {
        let attributes = &cx.node.attributes;
        let (axis, epsilon) = (attributes.int_or("axis", -1)?, attributes.float_or("epsilon", 1e-5)?);
        Ok(Box::new(LayerNorm { axis, epsilon, isa: lanes::selected()?, portable: Portable::new(cx)? }))
    },
};

/// ONNX `Softmax` over the last axis.
pub(crate) const SOFTMAX: KernelSpec = KernelSpec {
    domain: "",
    op: "Softmax",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && may_be_float(cx, 0),
    build: |cx| {
        let flat = cx.opset < 13;
        let axis = cx.node.attributes.int_or("axis", if flat { 1 } else { -1 })?;
        Ok(Box::new(Softmax { axis, flat, isa: lanes::selected()?, portable: Portable::new(cx)? }))
    },
};

struct LayerNorm {
    axis: i64,
    epsilon: f32,
    isa: Isa,
    portable: Portable,
}

/// Calls `f` with each row of `width` elements of `from`, and the same row of `to`.
///
/// # Errors
/// When the call is cancelled.
fn each_row(
    cx: &RunCx<'_>,
    from: &[f32],
    to: &mut [f32],
    width: usize,
    f: impl Fn(&[f32], &mut [f32]) + Sync,
) -> Result<(), Cancelled> {
    let rows = from.len() / width.max(1);
    let to = DisjointMut::new(to);
    let (tasks, each) = crate::gemm::share(rows, from.len() * 8, cx.team().threads());
    cx.team().run(tasks, &|task| {
        let mut watch = cx.cancel().watch();
        for row in task * each..((task + 1) * each).min(rows) {
            if watch.pass(width).is_err() {
                return;
            }
            let range = row * width..(row + 1) * width;
            // SAFETY: each row is written by one task.
            f(&from[range.clone()], unsafe { to.part(range) });
        }
    });
    cx.cancel().check()
}

impl Kernel for LayerNorm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..3) {
            return self.portable.run(cx);
        }
        let (x, scale) = (cx.dense(0)?, cx.dense(1)?);
        let bias = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
        let axis = heirloom_runtime::normalize_axis(self.axis, x.shape().len())?;
        let tail = &x.shape()[axis..];
        let whole = scale.shape() == tail && bias.as_ref().is_none_or(|b| b.shape() == tail);
        if !whole || x.is_empty() {
            return self.portable.run(cx);
        }
        let width = tail.iter().product();
        let bias = bias.as_ref().map(|b| b.as_slice::<f32>()).transpose()?;
        let (scale, epsilon, isa) = (scale.as_slice::<f32>()?, self.epsilon, self.isa);
        let mut out = cx.alloc(DType::Float, x.shape())?;
        each_row(cx, x.as_slice()?, out.elements_mut(), width, |from, to| {
            layer_norm(isa, from, scale, bias.unwrap_or(&[]), epsilon, to);
        })?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

struct Softmax {
    axis: i64,
    /// Before version 13 all axes from `axis` on are one.
    flat: bool,
    isa: Isa,
    portable: Portable,
}

impl Kernel for Softmax {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) {
            return self.portable.run(cx);
        }
        let x = cx.dense(0)?;
        let shape = Shape::from_slice(x.shape());
        let axis = heirloom_runtime::normalize_axis(self.axis, shape.len().max(1))?;
        if (!self.flat && axis + 1 != shape.len()) || x.is_empty() {
            return self.portable.run(cx);
        }
        let width = shape[axis..].iter().product();
        let isa = self.isa;
        let mut out = cx.alloc(DType::Float, &shape)?;
        each_row(cx, x.as_slice()?, out.elements_mut(), width, |from, to| softmax(isa, from, to))?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

for_level! {
    fn layer_norm(s, x: &[f32], scale: &[f32], bias: &[f32], epsilon: f32, out: &mut [f32]) {
        let n = x.len();
        let whole = n / S::N * S::N;
        let mut sum = s.splat(0.0);
        for at in (0..whole).step_by(S::N) {
            sum = s.add(sum, s.load(&x[at..]));
        }
        let mean = (s.sum(sum) + x[whole..].iter().sum::<f32>()) / n as f32;
        let middle = s.splat(mean);
        let mut squares = s.splat(0.0);
        for at in (0..whole).step_by(S::N) {
            let d = s.sub(s.load(&x[at..]), middle);
            squares = s.fma(d, d, squares);
        }
        let rest: f32 = x[whole..].iter().map(|v| (v - mean) * (v - mean)).sum();
        let factor = 1.0 / ((s.sum(squares) + rest) / n as f32 + epsilon).sqrt();
        let wide = s.splat(factor);
        for at in (0..whole).step_by(S::N) {
            let normal = s.mul(s.sub(s.load(&x[at..]), middle), wide);
            let shift = if bias.is_empty() { s.splat(0.0) } else { s.load(&bias[at..]) };
            s.store(&mut out[at..], s.fma(normal, s.load(&scale[at..]), shift));
        }
        for at in whole..n {
            out[at] = (x[at] - mean) * factor * scale[at] + bias.get(at).copied().unwrap_or(0.0);
        }
    }
}

for_level! {
    fn softmax(s, x: &[f32], out: &mut [f32]) {
        let n = x.len();
        let whole = n / S::N * S::N;
        let mut greatest = x[whole..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if whole > 0 {
            let mut most = s.load(x);
            for at in (S::N..whole).step_by(S::N) {
                most = s.max(most, s.load(&x[at..]));
            }
            greatest = greatest.max(s.largest(most));
        }
        // A row of negative infinities, or one with NaN, is NaN: as the definition has it.
        if !greatest.is_finite() || x.iter().any(|v| v.is_nan()) {
            let sum: f32 = x.iter().map(|v| (v - greatest).exp()).sum();
            out.iter_mut().zip(x).for_each(|(o, v)| *o = (v - greatest).exp() / sum);
            return;
        }
        let shift = s.splat(greatest);
        let mut sums = s.splat(0.0);
        for at in (0..whole).step_by(S::N) {
            let e = s.exp(s.sub(s.load(&x[at..]), shift));
            s.store(&mut out[at..], e);
            sums = s.add(sums, e);
        }
        let mut sum = s.sum(sums);
        for at in whole..n {
            out[at] = (x[at] - greatest).exp();
            sum += out[at];
        }
        let factor = s.splat(1.0 / sum);
        for at in (0..whole).step_by(S::N) {
            let e = s.mul(s.load(&out[at..]), factor);
            s.store(&mut out[at..], e);
        }
        out[whole..].iter_mut().for_each(|o| *o /= sum);
    }
}
