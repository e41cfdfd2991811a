//! Conversions between number types.

use half::{bf16, f16};
use heirloom_mem::Element;

/// How a type's values convert without losing more than they must.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Through {
    F32,
    F64,
    I64,
    U64,
}

/// A number that converts to and from any other.
pub(crate) trait Number: Element {
    const THROUGH: Through;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn to_u64(self) -> u64;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn is_zero(self) -> bool;
}

macro_rules! primitive {
    ($($ty:ty => $through:ident, $zero:expr;)*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, clippy::unnecessary_cast)]
        impl Number for $ty {
            const THROUGH: Through = Through::$through;
            fn to_f32(self) -> f32 { self as f32 }
            fn to_f64(self) -> f64 { self as f64 }
            fn to_i64(self) -> i64 { self as i64 }
            fn to_u64(self) -> u64 { self as u64 }
            fn from_f32(value: f32) -> $ty { value as $ty }
            fn from_f64(value: f64) -> $ty { value as $ty }
            fn from_i64(value: i64) -> $ty { value as $ty }
            fn from_u64(value: u64) -> $ty { value as $ty }
            fn is_zero(self) -> bool { self == $zero }
        }
    )*};
}
primitive! {
    f32 => F32, 0.0; f64 => F64, 0.0;
    i64 => I64, 0; i32 => I64, 0; i16 => I64, 0; i8 => I64, 0;
    u64 => U64, 0; u32 => U64, 0; u16 => U64, 0; u8 => U64, 0;
}

macro_rules! half_width {
    ($($ty:ident),*) => {$(
        #[allow(clippy::cast_possible_truncation)]
        impl Number for $ty {
            const THROUGH: Through = Through::F32;
            fn to_f32(self) -> f32 { self.to_f32() }
            fn to_f64(self) -> f64 { self.to_f64() }
            fn to_i64(self) -> i64 { self.to_f32() as i64 }
            fn to_u64(self) -> u64 { self.to_f32() as u64 }
            fn from_f32(value: f32) -> $ty { $ty::from_f32(value) }
            fn from_f64(value: f64) -> $ty { $ty::from_f64(value) }
            fn from_i64(value: i64) -> $ty { $ty::from_f64(value as f64) }
            fn from_u64(value: u64) -> $ty { $ty::from_f64(value as f64) }
            fn is_zero(self) -> bool { self.to_f32() == 0.0 }
        }
    )*};
}
half_width!(f16, bf16);

/// Converts each element.
pub(crate) fn convert<F: Number, T: Number>(from: &[F], to: &mut [T]) {
    let pairs = to.iter_mut().zip(from);
    match F::THROUGH {
        Through::F32 => pairs.for_each(|(t, f)| *t = T::from_f32(f.to_f32())),
        Through::F64 => pairs.for_each(|(t, f)| *t = T::from_f64(f.to_f64())),
        Through::I64 => pairs.for_each(|(t, f)| *t = T::from_i64(f.to_i64())),
        Through::U64 => pairs.for_each(|(t, f)| *t = T::from_u64(f.to_u64())),
    }
}
