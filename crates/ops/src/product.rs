//! Matrix products, straight from the definition.

use heirloom_runtime::{CancelToken, Cancelled};

/// A number that products are made of; integers wrap.
pub(crate) trait Ring: Copy + Default + Send + Sync {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! ring {
    ($($ty:ty: $plus:expr, $times:expr;)*) => {$(
        impl Ring for $ty {
            #[inline]
            fn plus(self, other: $ty) -> $ty { ($plus)(self, other) }
            #[inline]
            fn times(self, other: $ty) -> $ty { ($times)(self, other) }
        }
    )*};
}
ring! {
    f32: |a, b| a + b, |a, b| a * b;
    f64: |a, b| a + b, |a, b| a * b;
    i32: i32::wrapping_add, i32::wrapping_mul;
    i64: i64::wrapping_add, i64::wrapping_mul;
    u32: u32::wrapping_add, u32::wrapping_mul;
    u64: u64::wrapping_add, u64::wrapping_mul;
}

/// Sums in a dot product that run side by side.
const LANES: usize = 16;

/// The sum of the products of two lists.
pub(crate) fn dot<T: Ring>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::default(); LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for (lane, (&x, &y)) in lanes.iter_mut().zip(x.iter().zip(y)) {
            *lane = lane.plus(x.times(y));
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = lane.plus(x.times(y));
    }
    lanes.into_iter().fold(T::default(), T::plus)
}

/// `to += factor * from`.
pub(crate) fn add_scaled<T: Ring>(to: &mut [T], factor: T, from: &[T]) {
    for (t, &f) in to.iter_mut().zip(from) {
        *t = t.plus(factor.times(f));
    }
}

/// `out = a b`: a is [m, k], b is [k, n], or [n, k] where it is `transposed`.
///
/// # Errors
/// When the call is cancelled; that is looked at for each row.
pub(crate) fn product<T: Ring>(
    out: &mut [T],
    a: &[T],
    b: &[T],
    (n, k): (usize, usize),
    transposed: bool,
    cancel: &CancelToken,
) -> Result<(), Cancelled> {
    for (row, out) in out.chunks_exact_mut(n.max(1)).enumerate() {
        cancel.check()?;
        let a = &a[row * k..(row + 1) * k];
        if transposed {
            out.iter_mut().enumerate().for_each(|(column, o)| *o = dot(a, &b[column * k..(column + 1) * k]));
        } else {
            out.fill(T::default());
            a.iter().enumerate().for_each(|(i, &factor)| add_scaled(out, factor, &b[i * n..(i + 1) * n]));
        }
    }
    Ok(())
}
