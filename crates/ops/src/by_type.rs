//! From a tensor's element type to Rust's.

/// Evaluates `$body` with `$t` as the Rust type of `$dtype`'s elements, or `$other` for types that are not listed.
macro_rules! by_type {
    ($dtype:expr, [$($ty:ty),+ $(,)?], $t:ident => $body:expr, _ => $other:expr $(,)?) => {
        match $dtype {
            $(<$ty as ::heirloom_mem::Element>::DTYPE => { type $t = $ty; $body })+
            _ => $other,
        }
    };
}

/// [`by_type`] for all floating-point types that Rust computes with.
macro_rules! by_real {
    ($dtype:expr, $t:ident => $body:expr, _ => $other:expr $(,)?) => {
        $crate::by_type::by_type!($dtype, [f32, f64, ::half::f16, ::half::bf16], $t => $body, _ => $other)
    };
}

/// [`by_type`] for all number types that Rust computes with.
macro_rules! by_number {
    ($dtype:expr, $t:ident => $body:expr, _ => $other:expr $(,)?) => {
        $crate::by_type::by_type!(
            $dtype,
            [f32, f64, ::half::f16, ::half::bf16, i64, i32, i16, i8, u64, u32, u16, u8],
            $t => $body, _ => $other
        )
    };
}

pub(crate) use by_number;
pub(crate) use by_real;
pub(crate) use by_type;
