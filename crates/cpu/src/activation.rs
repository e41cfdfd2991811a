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
    /// `x * normal distribution(x)`, or its approximation by tanh.
    GELU: "Gelu" since 20, |a| [f32::from(u8::from(a.opt_string("approximate")? == Some(b"tanh"))), 0.0], gelu;
    /// `max(x, 0)`
    RELU: "Relu" since 6, |_a| [0.0, 0.0], relu;
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

/// Elements per task: they stay in the first-level cache between the copy and the function.
const PIECE: usize = 4096;

/// Tasks that are not worth sharing.
const ALONE: usize = 4;

impl Kernel for Activation {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) {
            return self.portable.run(cx);
        }
        let given = cx.take_unique(0);
        let from = if given.is_none() { Some(cx.dense(0)?) } else { None };
        let mut out = match (given, &from) {
            (Some(out), _) => out,
            (None, from) => cx.alloc(DType::Float, from.as_ref().map_or(&[], |x| x.shape()))?,
        };
        let from = from.as_ref().map(|x| x.as_slice::<f32>()).transpose()?;
        let all = out.elements_mut::<f32>();
        let len = all.len();
        let to = DisjointMut::new(all);
        let ledger = cx.ledger();
        let count = len.div_ceil(PIECE);
        let cancel = cx.cancel();
        let pieces = |task: usize| {
            if count > ALONE && cancel.is_cancelled() {
                return;
            }
            let range = task * PIECE..((task + 1) * PIECE).min(len);
            // SAFETY: each piece is written by one task.
            let piece = unsafe { to.part(range.clone()) };
            if let Some(from) = from {
                heirloom_mem::copy::into(piece, &from[range], heirloom_mem::copy::Purpose::Kernel, ledger);
            }
            (self.f)(self.isa, piece, self.parameters);
        };
        // Few are done before another thread has begun.
        if count <= ALONE {
            (0..count).for_each(pieces);
        } else {
            cx.team().run(count, &pieces);
            cancel.check()?;
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// One element's function, for a register of them. A closure would not be inlined into code of another level.
trait Map<S: Lanes>: Copy {
    fn of(self, s: S, v: S::V) -> S::V;
}

/// Functions of an element `v` and two parameters, each compiled for every level.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident, $map:ident: |$s:ident, $v:ident, $parameters:ident| $body:block)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $map([f32; 2]);

        impl<S: Lanes> Map<S> for $map {
            #[inline(always)]
            fn of(self, $s: S, $v: S::V) -> S::V {
                let $parameters = self.0;
                $body
            }
        }

        for_level! {
            fn $name(s, x: &mut [f32], parameters: [f32; 2]) {
                each(s, x, $map(parameters));
            }
        }
    )*};
}

functions! {
    swish, SwishMap: |s, v, p| {
        s.div(v, s.add(s.splat(1.0), s.exp(s.mul(v, s.splat(-p[0])))))
    }
    sigmoid, SigmoidMap: |s, v, p| {
        let one = s.splat(1.0);
        s.div(one, s.add(one, s.exp(s.mul(v, s.splat(-p[0])))))
    }
    tanh, TanhMap: |s, v, _p| {
        let (zero, one) = (s.splat(0.0), s.splat(1.0));
        // (1 - e) / (1 + e) with e = exp(-2 |x|), and the sign of x.
        let e = s.exp(s.mul(s.splat(-2.0), s.max(v, s.sub(zero, v))));
        let positive = s.div(s.sub(one, e), s.add(one, e));
        // Small ones go by the series.
        let square = s.min(s.mul(v, v), one);
        let series = s.mul(v, s.fma(square, s.fma(square, s.splat(2.0 / 15.0), s.splat(-1.0 / 3.0)), one));
        let sign = s.sub(s.zero_below(v, zero, s.splat(2.0)), one);
        let large = s.zero_below(square, s.splat(0.0025), one);
        s.fma(large, s.mul(sign, positive), s.mul(s.sub(one, large), series))
    }
    /// Abramowitz and Stegun 7.1.26, to within 1.5e-7; the series below 0.5.
    erf, ErfMap: |s, v, _p| {
        let (zero, one) = (s.splat(0.0), s.splat(1.0));
        // The second operand wins where one is NaN.
        let magnitude = s.min(s.splat(9.0), s.max(v, s.sub(zero, v)));
        let t = s.div(one, s.fma(magnitude, s.splat(0.327_591_1), one));
        let mut p = s.splat(1.061_405_4);
        for c in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
            p = s.fma(p, t, s.splat(c));
        }
        let tail = s.mul(s.mul(p, t), s.exp(s.sub(zero, s.mul(magnitude, magnitude))));
        let sign = s.sub(s.zero_below(v, zero, s.splat(2.0)), one);
        let square = s.min(s.mul(v, v), one);
        let mut series = s.splat(-8.548_327e-4);
        let first = std::f32::consts::FRAC_2_SQRT_PI;
        for c in [5.223_977_6e-3, -2.686_617e-2, 0.112_837_92, -0.376_126_4, first] {
            series = s.fma(series, square, s.splat(c));
        }
        let small = s.mul(series, s.max(s.min(v, one), s.splat(-1.0)));
        let large = s.zero_below(magnitude, s.splat(0.5), one);
        s.fma(large, s.mul(sign, s.sub(one, tail)), s.mul(s.sub(one, large), small))
    }
    gelu, GeluMap: |s, v, p| {
        let share = if p[0] == 0.0 {
            ErfMap(p).of(s, s.mul(v, s.splat(std::f32::consts::FRAC_1_SQRT_2)))
        } else {
            // sqrt(2 / pi) * (v + 0.044715 v^3)
            let cubic = s.mul(v, s.fma(s.mul(v, v), s.splat(0.044_715), s.splat(1.0)));
            TanhMap(p).of(s, s.mul(cubic, s.splat(std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2)))
        };
        s.mul(s.mul(v, s.splat(0.5)), s.add(share, s.splat(1.0)))
    }
    relu, ReluMap: |s, v, _p| { s.max(s.splat(0.0), v) }
    leaky_relu, LeakyReluMap: |s, v, p| {
        let zero = s.splat(0.0);
        s.fma(s.splat(p[0]), s.min(zero, v), s.max(zero, v))
    }
    hard_sigmoid, HardSigmoidMap: |s, v, p| {
        s.max(s.min(s.fma(s.splat(p[0]), v, s.splat(p[1])), s.splat(1.0)), s.splat(0.0))
    }
    hard_swish, HardSwishMap: |s, v, p| {
        s.mul(v, s.max(s.min(s.fma(s.splat(p[0]), v, s.splat(p[1])), s.splat(1.0)), s.splat(0.0)))
    }
}

/// Applies `f` to every element; the last few go through a register that is filled up.
#[inline(always)]
fn each<S: Lanes>(s: S, x: &mut [f32], f: impl Map<S>) {
    let mut chunks = x.chunks_exact_mut(S::N);
    for chunk in &mut chunks {
        let v = f.of(s, s.load(chunk));
        s.store(chunk, v);
    }
    let rest = chunks.into_remainder();
    let mut last = [0.0f32; 16];
    last.iter_mut().zip(&*rest).for_each(|(to, x)| *to = *x);
    let v = f.of(s, s.load(&last));
    s.store(&mut last, v);
    rest.iter_mut().zip(last).for_each(|(to, x)| *to = x);
}
