//! Half-precision floats within records.

use half::f16;

/// The FLOAT16 at byte `at` of `record`.
pub(crate) fn f16_at(record: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([record[at], record[at + 1]]).to_f32()
}

/// Stores `value` as a FLOAT16 at byte `at` of `record`, rounded to nearest even, and gives what was stored.
pub(crate) fn put_f16(record: &mut [u8], at: usize, value: f32) -> f32 {
    let half = f16::from_f32(value);
    let [low, high] = half.to_le_bytes();
    record[at] = low;
    record[at + 1] = high;
    half.to_f32()
}
