//! The number types of ONNX as operators on all of them compute: half-width floats in f32, integers in themselves.

use half::{bf16, f16};
use heirloom_mem::Element;

/// A number that arithmetic happens in. Integers wrap.
pub(crate) trait Scalar: Element + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    /// −∞ or the least integer.
    const LOWEST: Self;
    /// +∞ or the greatest integer.
    const GREATEST: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn is_nan(self) -> bool;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;

    /// The greater of two; NaN where either is.
    #[inline]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller of two; NaN where either is.
    #[inline]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }

    /// −1, 0 or 1; NaN and zeros as they are.
    #[inline]
    fn sign(self) -> Self {
        if self > Self::ZERO {
            Self::ONE
        } else if self < Self::ZERO {
            Self::ZERO.minus(Self::ONE)
        } else {
            self
        }
    }

    /// The order that sorting uses: NaN behind all numbers.
    #[inline]
    fn order(self, other: Self) -> std::cmp::Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
    }
}

macro_rules! floats {
    ($($ty:ident),*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
        impl Scalar for $ty {
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;
            const LOWEST: $ty = $ty::NEG_INFINITY;
            const GREATEST: $ty = $ty::INFINITY;
            #[inline]
            fn plus(self, other: $ty) -> $ty { self + other }
            #[inline]
            fn minus(self, other: $ty) -> $ty { self - other }
            #[inline]
            fn times(self, other: $ty) -> $ty { self * other }
            #[inline]
            fn magnitude(self) -> $ty { self.abs() }
            #[inline]
            fn is_nan(self) -> bool { self.is_nan() }
            fn to_f64(self) -> f64 { self as f64 }
            fn from_f64(value: f64) -> $ty { value as $ty }
        }
    )*};
}
floats!(f32, f64);

macro_rules! integers {
    ($($ty:ident: $magnitude:expr;)*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
        impl Scalar for $ty {
            const ZERO: $ty = 0;
            const ONE: $ty = 1;
            const LOWEST: $ty = $ty::MIN;
            const GREATEST: $ty = $ty::MAX;
            #[inline]
            fn plus(self, other: $ty) -> $ty { self.wrapping_add(other) }
            #[inline]
            fn minus(self, other: $ty) -> $ty { self.wrapping_sub(other) }
            #[inline]
            fn times(self, other: $ty) -> $ty { self.wrapping_mul(other) }
            #[inline]
            fn magnitude(self) -> $ty { ($magnitude)(self) }
            #[inline]
            fn is_nan(self) -> bool { false }
            fn to_f64(self) -> f64 { self as f64 }
            fn from_f64(value: f64) -> $ty { value as $ty }
        }
    )*};
}
integers! {
    i8: i8::wrapping_abs; i16: i16::wrapping_abs; i32: i32::wrapping_abs; i64: i64::wrapping_abs;
    u8: |v| v; u16: |v| v; u32: |v| v; u64: |v| v;
}

/// An element of a tensor of numbers.
pub(crate) trait Numeric: Element {
    /// What it is computed in.
    type Wide: Scalar;
    fn up(self) -> Self::Wide;
    fn down(wide: Self::Wide) -> Self;
}

macro_rules! numeric {
    ($($ty:ty),*) => {$(
        impl Numeric for $ty {
            type Wide = $ty;
            #[inline]
            fn up(self) -> $ty { self }
            #[inline]
            fn down(wide: $ty) -> $ty { wide }
        }
    )*};
}
numeric!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl Numeric for f16 {
    type Wide = f32;
    #[inline]
    fn up(self) -> f32 {
        self.to_f32()
    }
    #[inline]
    fn down(wide: f32) -> f16 {
        f16::from_f32(wide)
    }
}

impl Numeric for bf16 {
    type Wide = f32;
    #[inline]
    fn up(self) -> f32 {
        self.to_f32()
    }
    #[inline]
    fn down(wide: f32) -> bf16 {
        bf16::from_f32(wide)
    }
}
