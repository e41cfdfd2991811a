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

pub(crate) use by_type;
