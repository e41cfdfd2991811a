//! GGUF Q5_0: 32 elements, one scale, 5-bit codes with offset 16; `scale * (code - 16)`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::{extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::unpack::Unpack;

/// The format: `scale` (`d`), the fifth bit of each code (`qh`), then 16 bytes whose low nibbles belong to elements 0
/// to 15 and high nibbles to 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Q5_0;

pub(crate) static FORMAT: Format = Format::block::<Q5_0, 22, 32>("q5_0", 1_000_601, Some(6));

impl Block<22, 32> for Q5_0 {
    fn decode(record: &[u8; 22], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        let high = u32::from_le_bytes([record[2], record[3], record[4], record[5]]);
        for i in 0..16 {
            let byte = u32::from(record[6 + i]);
            let first = (byte & 15) | (high >> i & 1) << 4;
            let second = byte >> 4 | (high >> (16 + i) & 1) << 4;
            values[i] = scale * (first as i32 - 16) as f32;
            values[16 + i] = scale * (second as i32 - 16) as f32;
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 22]) {
        let scale = extreme(values) / -16.0;
        let inverse = inverse(scale);
        put_f16(record, 0, scale);
        let codes = values.map(|x| ((x * inverse + 16.5) as u8).min(31));
        put_five_bit_codes(&codes, record, 2);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("scale", Float16).bits("high_bits", &[("bit", 1)], 32).bits("low_bits", &NIBBLES, 16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = five_bit_codes(body);
        let codes = body.minus(&codes, 16.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &codes)
    }
}

/// Stores 5-bit codes as Q5_0 and Q5_1 do: 4 bytes of fifth bits at byte `at`, then 16 bytes of nibbles.
pub(crate) fn put_five_bit_codes(codes: &[u8; 32], record: &mut [u8], at: usize) {
    for (i, byte) in record[at..at + 4].iter_mut().enumerate() {
        *byte = (0..8).fold(0, |bits, j| bits | (codes[8 * i + j] >> 4) << j);
    }
    for (i, byte) in record[at + 4..at + 20].iter_mut().enumerate() {
        *byte = (codes[i] & 15) | codes[16 + i] << 4;
    }
}

/// The 5-bit codes of Q5_0 and Q5_1 as FLOAT: [records, 32].
pub(crate) fn five_bit_codes(body: &mut Body) -> Val {
    let low = body.joined_components(&["low_bits"], &["low", "high"], 1);
    let high = body.float_field(&["high_bits", "bit"]);
    body.with_high_bits(&low, &high, 4)
}

impl Unpack for Q5_0 {
    const RECORD_BYTES: usize = 22;
    const MAX: u8 = 31;
    const OFFSET: i32 = 16;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        five_bit_registers::<S, 22, 2, 6>(simd, records, half)
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<22, 0>(records)
    }
    #[inline(always)]
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<22, 0>(records)
    }
}

/// The codes of half `half` of Q5_0 and Q5_1, whose fifth bits are at byte `BITS` of each record and the others from `NIBBLES` on.
#[inline(always)]
pub(crate) fn five_bit_registers<S: Simd, const RECORD: usize, const BITS: usize, const NIBBLES: usize>(
    simd: S,
    records: &[u8],
    half: usize,
) -> [S::Codes; 2] {
    let records = &records[4 * half * RECORD..];
    let packed = simd.record_quarters::<RECORD, NIBBLES>(records);
    let bits = simd.record_bits::<RECORD, BITS>(records);
    [simd.five_bits::<false>(packed, bits), simd.five_bits::<true>(packed, bits)]
}
