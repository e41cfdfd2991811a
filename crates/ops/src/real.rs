//! The floating-point types of ONNX as Rust computes with them.

use half::{bf16, f16};
use heirloom_mem::Element;

/// A floating-point element. Half-width ones are computed in f32 and rounded once.
pub(crate) trait Real: Element {
    /// The type that arithmetic happens in.
    type Wide: num::Wide;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;

    fn to_f32(self) -> f32 {
        num::Wide::to_f32(self.widen())
    }

    fn from_f32(value: f32) -> Self {
        Self::narrow(num::Wide::from_f32(value))
    }
}

pub(crate) mod num {
    /// f32 or f64.
    pub(crate) trait Wide:
        Copy
        + PartialOrd
        + Default
        + std::ops::Add<Output = Self>
        + std::ops::Sub<Output = Self>
        + std::ops::Mul<Output = Self>
        + std::ops::Div<Output = Self>
        + std::ops::Neg<Output = Self>
        + std::ops::AddAssign
        + crate::product::Ring
        + heirloom_mem::Element
        + Send
        + Sync
    {
        const ZERO: Self;
        const ONE: Self;
        fn from_f32(value: f32) -> Self;
        fn from_f64(value: f64) -> Self;
        fn to_f32(self) -> f32;
        fn to_f64(self) -> f64;
        fn abs(self) -> Self;
        fn exp(self) -> Self;
        fn ln(self) -> Self;
        fn ln_1p(self) -> Self;
        fn error_function(self) -> Self;
        fn smaller(self, other: Self) -> Self;
        fn is_nan(self) -> bool;
        fn sqrt(self) -> Self;
        fn sin(self) -> Self;
        fn cos(self) -> Self;
        fn tanh(self) -> Self;
        fn larger(self, other: Self) -> Self;
    }

    macro_rules! wide {
        ($($ty:ident: $erf:ident),*) => {$(
            impl Wide for $ty {
                const ZERO: $ty = 0.0;
                const ONE: $ty = 1.0;
                fn from_f32(value: f32) -> $ty { $ty::from(value) }
                #[allow(clippy::cast_possible_truncation)]
                fn from_f64(value: f64) -> $ty { value as $ty }
                #[allow(clippy::cast_possible_truncation)]
                fn to_f32(self) -> f32 { self as f32 }
                fn to_f64(self) -> f64 { f64::from(self) }
                fn abs(self) -> $ty { self.abs() }
                fn exp(self) -> $ty { self.exp() }
                fn ln(self) -> $ty { self.ln() }
                fn ln_1p(self) -> $ty { self.ln_1p() }
                fn error_function(self) -> $ty { crate::erf::$erf(self) }
                fn smaller(self, other: $ty) -> $ty { self.min(other) }
                fn is_nan(self) -> bool { self.is_nan() }
                fn sqrt(self) -> $ty { self.sqrt() }
                fn sin(self) -> $ty { self.sin() }
                fn cos(self) -> $ty { self.cos() }
                fn tanh(self) -> $ty { self.tanh() }
                fn larger(self, other: $ty) -> $ty { self.max(other) }
            }
        )*};
    }
    wide!(f32: float, f64: double);
}

macro_rules! real {
    ($($ty:ty, $wide:ty: $widen:expr, $narrow:expr;)*) => {$(
        impl Real for $ty {
            type Wide = $wide;
            #[inline]
            fn widen(self) -> $wide { ($widen)(self) }
            #[inline]
            fn narrow(wide: $wide) -> $ty { ($narrow)(wide) }
        }
    )*};
}
real! {
    f32, f32: |v| v, |v| v;
    f64, f64: |v| v, |v| v;
    f16, f32: f16::to_f32, f16::from_f32;
    bf16, f32: bf16::to_f32, bf16::from_f32;
}

/// `ln(1 + exp(v))`, without overflow.
pub(crate) fn softplus<W: num::Wide>(v: W) -> W {
    if v.is_nan() { v } else { v.larger(W::ZERO) + (-v.abs()).exp().ln_1p() }
}
