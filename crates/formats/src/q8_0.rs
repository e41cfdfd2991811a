//! GGUF Q8_0: 32 elements, one scale, signed 8-bit codes; `scale * code`.

use heirloom_mem::DType::{Float16, Int8};
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::fit::{extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::unpack::{self, Unpack};

/// The format: `scale` (`d`), then 32 signed codes (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;

pub(crate) static FORMAT: Format = Format::block::<Q8_0, 34, 32>("q8_0", 1_000_801, Some(8));

impl Block<34, 32> for Q8_0 {
    fn decode(record: &[u8; 34], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        for i in 0..32 {
            values[i] = scale * f32::from(record[2 + i].cast_signed());
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 34]) {
        let scale = extreme(values).abs() / 127.0;
        let inverse = inverse(scale);
        put_f16(record, 0, scale);
        for i in 0..32 {
            record[2 + i] = ((values[i] * inverse).round() as i8).cast_unsigned();
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("scale", Float16).tensor("codes", Int8, &[32])
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.float_field(&["codes"]);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &codes)
    }
}

impl Unpack for Q8_0 {
    const RECORD_BYTES: usize = 34;
    const MAX: u8 = u8::MAX;
    const SIGNED: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        [
            simd.load_quarters(unpack::four(records, 34, half, 2)),
            simd.load_quarters(unpack::four(records, 34, half, 18)),
        ]
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16::<34, 0>(records)
    }
    #[inline(always)]
    fn scales_half<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        simd.record_f16_half::<34, 0>(records)
    }
}
