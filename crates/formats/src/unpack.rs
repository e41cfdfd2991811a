//! Unpacking records into registers: what products from quantized bytes need of a format.

use heirloom_simd::Simd;

use crate::Format;

/// A format whose values are `scale * (code - offset)` or `scale * code + minimum`, with integer codes and a scale for
/// each block of 32 elements or finer, unpacked a step of 256 elements at a time.
///
/// See [`Simd`] for steps, halves, registers of codes and lanes. `records` are the whole records of a step, or of its
/// first four blocks where records are blocks.
pub trait Unpack: Copy + Send + Sync + 'static {
    /// Bytes of a record.
    const RECORD_BYTES: usize;
    /// Blocks of a record: 1 or 8.
    const RECORD_BLOCKS: usize = 1;
    /// The largest code, at most 63; of no meaning where codes are signed.
    const MAX: u8;
    /// What is taken off each unsigned code: 0, or a power of two.
    const OFFSET: i32 = 0;
    /// Whether codes are signed bytes.
    const SIGNED: bool = false;
    /// Whether blocks have minima.
    const MINIMA: bool = false;
    /// Whether groups of 16 elements have signed 8-bit scales that multiply the block's.
    const GROUPS: bool = false;

    /// The row of the table.
    fn format() -> &'static Format;

    /// The codes of half `half`, first the first 16 of each of its blocks, then the last 16.
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2];

    /// The scales of the step's blocks, in their lanes.
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8;

    /// The scales of the first four blocks, in their lanes, and 0 for the others. Only where records are blocks.
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        Self::scales(simd, records)
    }

    /// What is added to every element of the step's blocks, in their lanes. Only with [`Unpack::MINIMA`].
    fn minima<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        let _ = records;
        simd.splat_f32x8(0.0)
    }

    /// As [`Unpack::scales_half`], the minima.
    fn minima_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        Self::minima(simd, records)
    }

    /// The scales of the step's groups. Only with [`Unpack::GROUPS`].
    fn groups(records: &[u8]) -> [u8; 16] {
        let _ = records;
        [0; 16]
    }
}

/// Calls `$with! { … }` with the types of all formats that implement [`Unpack`], separated by commas.
#[macro_export]
macro_rules! for_each_unpack {
    ($with:ident) => {
        $with! {
            $crate::q4_0::Q4_0,
            $crate::q4_1::Q4_1,
            $crate::q4_k::Q4K,
            $crate::q5_0::Q5_0,
            $crate::q5_1::Q5_1,
            $crate::q5_k::Q5K,
            $crate::q6_k::Q6K,
            $crate::q8_0::Q8_0,
        }
    };
}

/// `N` bytes from `at` on.
#[inline(always)]
pub(crate) fn bytes<const N: usize>(records: &[u8], at: usize) -> &[u8; N] {
    records[at..].first_chunk().expect("whole records")
}

/// `N` bytes at `at` of each of the four records of half `half`.
#[inline(always)]
pub(crate) fn four<const N: usize>(
    records: &[u8],
    record_bytes: usize,
    half: usize,
    at: usize,
) -> [&[u8; N]; 4] {
    let first = 4 * half * record_bytes + at;
    [
        bytes(records, first),
        bytes(records, first + record_bytes),
        bytes(records, first + 2 * record_bytes),
        bytes(records, first + 3 * record_bytes),
    ]
}

/// The nibbles of 16 bytes at `AT` of each record, where the low ones are the first 16 codes of a block.
#[inline(always)]
pub(crate) fn nibbles<S: Simd, const RECORD: usize, const AT: usize>(
    simd: S,
    records: &[u8],
    half: usize,
) -> [S::Codes; 2] {
    let low = simd.splat(15);
    let packed = simd.record_quarters::<RECORD, AT>(&records[4 * half * RECORD..]);
    [simd.and(packed, low), simd.and(simd.shr_quarters::<4, 4, 4, 4>(packed), low)]
}

#[inline(always)]
fn f16_bits(records: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes(records, at))
}

/// The FLOAT16 at `at`, in all lanes.
#[inline(always)]
pub(crate) fn splat_f16<S: Simd>(simd: S, records: &[u8], at: usize) -> S::F32x8 {
    simd.splat_f16(f16_bits(records, at))
}
