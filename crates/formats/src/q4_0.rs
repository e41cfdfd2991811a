//! GGUF Q4_0: 32 elements, one scale, 4-bit codes with offset 8; `scale * (code - 8)`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::{extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::unpack::{self, Unpack};

/// The format: `scale` (`d`), then 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Q4_0;

pub(crate) static FORMAT: Format = Format::block::<Q4_0, 18, 32>("q4_0", 1_000_201, Some(2));

impl Block<18, 32> for Q4_0 {
    fn decode(record: &[u8; 18], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        for i in 0..16 {
            let byte = record[2 + i];
            values[i] = scale * (i32::from(byte & 15) - 8) as f32;
            values[16 + i] = scale * (i32::from(byte >> 4) - 8) as f32;
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 18]) {
        let scale = extreme(values) / -8.0;
        let inverse = inverse(scale);
        put_f16(record, 0, scale);
        let code = |x: f32| ((x * inverse + 8.5) as u8).min(15);
        for i in 0..16 {
            record[2 + i] = code(values[i]) | code(values[16 + i]) << 4;
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("scale", Float16).bits("codes", &NIBBLES, 16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.joined_components(&["codes"], &["low", "high"], 1);
        let codes = body.minus(&codes, 8.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &codes)
    }
}

impl Unpack for Q4_0 {
    const RECORD_BYTES: usize = 18;
    const MAX: u8 = 15;
    const OFFSET: i32 = 8;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        unpack::nibbles::<S, 18, 2>(simd, records, half)
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<18, 0>(records)
    }
    #[inline(always)]
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<18, 0>(records)
    }
}
