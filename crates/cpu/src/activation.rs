//! Activations of FLOAT tensors.
#![allow(unsafe_code)]

use heirloom_mem::DType;
use heirloom_runtime::{Kernel, KernelError, KernelSpec, RunCx};

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::lanes::{self, Lanes, for_level};
use heirloom_simd::Isa;

/// A table of operators that compute each FLOAT element by itself: its name, the first version, what it reads of the
/// attributes, and the function.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident: $op:literal since $since:literal, |$cx:ident| $parameters:expr, $f:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) const $name: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, i64::MAX),
            rank: 10,
            accepts: |cx| cx.plain_inputs() && may_be_float(cx, 0),
            build: |cx| {
                let $cx = &cx.node.attributes;
                let parameters: [f32; 2] = $parameters;
                let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
                Ok(Box::new(Activation { f: $f, parameters, isa, portable }))
            },
        };
    )*};
}

activations! {
    /// `x * sigmoid(alpha * x)`
    SWISH: "Swish" since 24, |a| [a.float_or("alpha", 1.0)?, 0.0], swish;
    /// `1 / (1 + exp(-x))`
    SIGMOID: "Sigmoid" since 6, |_a| [1.0, 0.0], sigmoid;
    /// `tanh(x)`
    TANH: "Tanh" since 6, |_a| [0.0, 0.0], tanh;
    /// The error function.
    ERF: "Erf" since 9, |_a| [0.0, 0.0], erf;
    /// `max(x, 0)`
    RELU: "Relu" since 6, |_a| [0.0, 0.0], leaky_relu;
    /// `x`, below 0 `alpha * x`
    LEAKY_RELU: "LeakyRelu" since 6, |a| [a.float_or("alpha", 0.01)?, 0.0], leaky_relu;
    /// `alpha * x + beta` within 0 and 1
    HARD_SIGMOID: "HardSigmoid" since 6, |a| [a.float_or("alpha", 0.2)?, a.float_or("beta", 0.5)?], hard_sigmoid;
    /// `x * max(0, min(1, x / 6 + 0.5))`
    HARD_SWISH: "HardSwish" since 14, |_a| [1.0 / 6.0, 0.5], hard_swish;
}

struct Activation {
    f: fn(Isa, &mut [f32], [f32; 2]),
    parameters: [f32; 2],
    isa: Isa,
    portable: Portable,
}

/// Elements per task.
const PIECE: usize = 8192;

impl Kernel for Activation {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) {
            return self.portable.run(cx);
        }
        let mut out = match cx.take_unique(0) {
            Some(out) => out,
            None => {
                let x = cx.dense(0)?;
                let mut out = cx.alloc(DType::Float, x.shape())?;
                heirloom_mem::copy::into(
                    out.elements_mut::<f32>(),
                    x.as_slice::<f32>()?,
                    heirloom_mem::copy::Purpose::Kernel,
                    cx.ledger(),
                );
                out
            }
        };
        let all = out.elements_mut::<f32>();
        let len = all.len();
        let to = DisjointMut::new(all);
        cx.team().run(len.div_ceil(PIECE), &|task| {
            // SAFETY: each piece is written by one task.
            let piece = unsafe { to.part(task * PIECE..((task + 1) * PIECE).min(len)) };
            (self.f)(self.isa, piece, self.parameters);
        });
        cx.set(0, out.freeze());
        Ok(())
    }
}

for_level! {
    fn swish(s, x: &mut [f32], parameters: [f32; 2]) {
        let (one, alpha) = (s.splat(1.0), s.splat(-parameters[0]));
        each(s, x, |v| s.div(v, s.add(one, s.exp(s.mul(v, alpha)))));
    }
}

for_level! {
    fn sigmoid(s, x: &mut [f32], parameters: [f32; 2]) {
        let (one, alpha) = (s.splat(1.0), s.splat(-parameters[0]));
        each(s, x, |v| s.div(one, s.add(one, s.exp(s.mul(v, alpha)))));
    }
}

for_level! {
    fn tanh(s, x: &mut [f32], _parameters: [f32; 2]) {
        let (zero, one, two) = (s.splat(0.0), s.splat(1.0), s.splat(-2.0));
        each(s, x, |v| {
            // (1 - e) / (1 + e) with e = exp(-2 |x|), and the sign of x.
            let e = s.exp(s.mul(two, s.max(v, s.sub(zero, v))));
            let positive = s.div(s.sub(one, e), s.add(one, e));
            // Small ones go by the series.
            let square = s.mul(v, v);
            let series = s.mul(v, s.fma(square, s.fma(square, s.splat(2.0 / 15.0), s.splat(-1.0 / 3.0)), one));
            let sign = s.sub(s.zero_below(v, zero, s.splat(2.0)), one);
            let large = s.zero_below(square, s.splat(0.0025), one);
            s.fma(large, s.sub(s.mul(sign, positive), series), series)
        });
    }
}

for_level! {
    /// Abramowitz and Stegun 7.1.26, to within 1.5e-7; the series below 0.5.
    fn erf(s, x: &mut [f32], _parameters: [f32; 2]) {
        let (zero, one) = (s.splat(0.0), s.splat(1.0));
        each(s, x, |v| {
            let magnitude = s.min(s.max(v, s.sub(zero, v)), s.splat(9.0));
            let t = s.div(one, s.fma(magnitude, s.splat(0.327_591_1), one));
            let mut p = s.splat(1.061_405_4);
            for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
                p = s.fma(p, t, s.splat(c));
            }
            let tail = s.mul(s.mul(p, t), s.exp(s.sub(zero, s.mul(magnitude, magnitude))));
            let sign = s.sub(s.zero_below(v, zero, s.splat(2.0)), one);
            let square = s.mul(v, v);
            let mut series = s.splat(-8.548_327e-4);
            for c in [5.223_977_6e-3, -2.686_617e-2, 0.112_837_92, -0.376_126_4, 1.128_379_2] {
                series = s.fma(series, square, s.splat(c));
            }
            series = s.mul(series, v);
            let large = s.zero_below(magnitude, s.splat(0.5), one);
            // Large arguments would spoil the series, not only the sum.
            let small = s.mul(s.sub(one, large), s.min(s.max(series, s.splat(-1.0)), one));
            s.fma(large, s.mul(sign, s.sub(one, tail)), small)
        });
    }
}

for_level! {
    fn leaky_relu(s, x: &mut [f32], parameters: [f32; 2]) {
        let (zero, alpha) = (s.splat(0.0), s.splat(parameters[0]));
        if parameters[0] == 0.0 {
            each(s, x, |v| s.max(zero, v));
        } else {
            each(s, x, |v| s.fma(alpha, s.min(v, zero), s.max(v, zero)));
        }
    }
}

for_level! {
    fn hard_sigmoid(s, x: &mut [f32], parameters: [f32; 2]) {
        let [alpha, beta] = parameters.map(|p| s.splat(p));
        each(s, x, |v| s.max(s.min(s.fma(alpha, v, beta), s.splat(1.0)), s.splat(0.0)));
    }
}

for_level! {
    fn hard_swish(s, x: &mut [f32], parameters: [f32; 2]) {
        let [alpha, beta] = parameters.map(|p| s.splat(p));
        each(s, x, |v| s.mul(v, s.max(s.min(s.fma(alpha, v, beta), s.splat(1.0)), s.splat(0.0))));
    }
}

/// Applies `f` to every element; the last few go through a register that is filled up.
#[inline(always)]
fn each<S: Lanes>(s: S, x: &mut [f32], f: impl Fn(S::V) -> S::V) {
    let mut chunks = x.chunks_exact_mut(S::N);
    for chunk in &mut chunks {
        let v = f(s.load(chunk));
        s.store(chunk, v);
    }
    let rest = chunks.into_remainder();
    let mut last = [0.0f32; 16];
    last.iter_mut().zip(&*rest).for_each(|(to, x)| *to = *x);
    let v = f(s.load(&last));
    s.store(&mut last, v);
    rest.iter_mut().zip(last).for_each(|(to, x)| *to = x);
}
