//! GGUF Q4_1: 32 elements, scale and minimum, 4-bit codes; `scale * code + minimum`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::{inverse, range};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::unpack::{self, Unpack};

/// The format: `scale` (`d`), `minimum` (`m`), then 16 bytes whose low nibbles are elements 0 to 15 and high nibbles
/// 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Q4_1;

pub(crate) static FORMAT: Format = Format::block::<Q4_1, 20, 32>("q4_1", 1_000_301, Some(3));

impl Block<20, 32> for Q4_1 {
    fn decode(record: &[u8; 20], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        let minimum = f16_at(record, 2);
        for i in 0..16 {
            let byte = record[4 + i];
            values[i] = scale * f32::from(byte & 15) + minimum;
            values[16 + i] = scale * f32::from(byte >> 4) + minimum;
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 20]) {
        let (low, high) = range(values);
        let scale = (high - low) / 15.0;
        let inverse = inverse(scale);
        put_f16(record, 0, scale);
        put_f16(record, 2, low);
        let code = |x: f32| (((x - low) * inverse + 0.5) as u8).min(15);
        for i in 0..16 {
            record[4 + i] = code(values[i]) | code(values[16 + i]) << 4;
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("scale", Float16).field("minimum", Float16).bits("codes", &NIBBLES, 16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.joined_components(&["codes"], &["low", "high"], 1);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        let minimum = body.float_field(&["minimum"]);
        let minimum = body.column(&minimum);
        let scaled = body.mul(&scale, &codes);
        body.add(&scaled, &minimum)
    }
}

impl Unpack for Q4_1 {
    const RECORD_BYTES: usize = 20;
    const MAX: u8 = 15;
    const MINIMA: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        unpack::nibbles::<S, 20, 4>(simd, records, half)
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<20, 0>(records)
    }
    #[inline(always)]
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<20, 0>(records)
    }
    #[inline(always)]
    fn minima<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<20, 2>(records)
    }
    #[inline(always)]
    fn minima_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<20, 2>(records)
    }
}
