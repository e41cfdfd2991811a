//! GGUF Q5_1: 32 elements, scale and minimum, 5-bit codes; `scale * code + minimum`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::{inverse, range};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::q5_0::{five_bit_codes, five_bit_registers, put_five_bit_codes};
use crate::unpack::Unpack;

/// The format: `scale` (`d`), `minimum` (`m`), the fifth bit of each code (`qh`), then 16 bytes whose low nibbles
/// belong to elements 0 to 15 and high nibbles to 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Q5_1;

pub(crate) static FORMAT: Format = Format::block::<Q5_1, 24, 32>("q5_1", 1_000_701, Some(7));

impl Block<24, 32> for Q5_1 {
    fn decode(record: &[u8; 24], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        let minimum = f16_at(record, 2);
        let high = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
        for i in 0..16 {
            let byte = u32::from(record[8 + i]);
            let first = (byte & 15) | (high >> i & 1) << 4;
            let second = byte >> 4 | (high >> (16 + i) & 1) << 4;
            values[i] = scale * first as f32 + minimum;
            values[16 + i] = scale * second as f32 + minimum;
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 24]) {
        let (low, high) = range(values);
        let scale = (high - low) / 31.0;
        let inverse = inverse(scale);
        put_f16(record, 0, scale);
        put_f16(record, 2, low);
        let codes = values.map(|x| (((x - low) * inverse + 0.5) as u8).min(31));
        put_five_bit_codes(&codes, record, 4);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record
            .field("scale", Float16)
            .field("minimum", Float16)
            .bits("high_bits", &[("bit", 1)], 32)
            .bits("low_bits", &NIBBLES, 16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = five_bit_codes(body);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        let minimum = body.float_field(&["minimum"]);
        let minimum = body.column(&minimum);
        let scaled = body.mul(&scale, &codes);
        body.add(&scaled, &minimum)
    }
}

impl Unpack for Q5_1 {
    const RECORD_BYTES: usize = 24;
    const MAX: u8 = 31;
    const MINIMA: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        five_bit_registers::<S, 24, 4, 8>(simd, records, half)
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<24, 0>(records)
    }
    #[inline(always)]
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<24, 0>(records)
    }
    #[inline(always)]
    fn minima<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<24, 2>(records)
    }
    #[inline(always)]
    fn minima_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<24, 2>(records)
    }
}
