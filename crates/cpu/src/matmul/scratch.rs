//! Typed parts of a scratch buffer.
#![allow(unsafe_code)]

/// The alignment of every part.
pub(crate) const ALIGN: usize = 64;

/// Types that any bytes are a value of.
///
/// # Safety
/// All bit patterns are values, there is no padding, and the alignment is at most [`ALIGN`].
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: plain integers and floats have no invalid bits and no padding; arrays of them neither.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for [u8; 64] {}
// SAFETY: as above.
unsafe impl Plain for [f32; 16] {}
// SAFETY: as above.
unsafe impl Plain for [i32; 16] {}

/// Bytes to reserve for `count` values of `T`, whatever the buffer's alignment.
pub(crate) fn bytes_for<T: Plain>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>()).saturating_add(ALIGN)
}

/// The first `count` values of `T` of `scratch`, aligned, and what is left. The values are what the bytes were.
///
/// # Panics
/// When `scratch` has less than [`bytes_for`] says.
pub(crate) fn carve<T: Plain>(scratch: &mut [u8], count: usize) -> (&mut [T], &mut [u8]) {
    let skip = scratch.as_ptr().align_offset(ALIGN);
    let bytes = count * size_of::<T>();
    let (part, rest) = scratch[skip..].split_at_mut(bytes);
    // SAFETY: any bytes are values of `T`.
    let (before, values, after) = unsafe { part.align_to_mut::<T>() };
    assert!(before.is_empty() && after.is_empty() && values.len() == count, "the part is aligned");
    (values, rest)
}

/// The bytes of floats, in this machine's order.
pub(crate) fn float_bytes(floats: &[f32]) -> &[u8] {
    // SAFETY: a float is four initialized bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), size_of_val(floats)) }
}
