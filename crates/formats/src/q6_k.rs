//! GGUF Q6_K: 256 elements in 16 sub-blocks with signed 8-bit scales, 6-bit codes with offset 32;
//! `scale * scales[j] * (code - 32)`.

use heirloom_mem::DType::{Float16, Int8};
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{NIBBLES, QUARTERS, names, with_bit_rows};
use crate::fit::{extreme, inverse, nearest, symmetric, symmetric_code};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::unpack::{self, Unpack};

/// The format, in two halves of 128 elements: 2 rows of 64 bytes with the low 4 bits (`ql`), low nibbles first; 2 rows
/// of 32 bytes with the high 2 bits (`qh`), lowest pair first; then 16 `scales` and the `scale` (`d`).
#[derive(Clone, Copy, Debug)]
pub struct Q6K;

pub(crate) static FORMAT: Format = Format::block::<Q6K, 210, 256>("q6_k", 1_001_401, Some(14));

const SCALES: usize = 192;
const SCALE: usize = 208;

impl Block<210, 256> for Q6K {
    fn decode(record: &[u8; 210], values: &mut [f32; 256]) {
        let scale = f16_at(record, SCALE);
        for (half, values) in values.as_chunks_mut::<128>().0.iter_mut().enumerate() {
            let low: &[u8; 64] = record[64 * half..].first_chunk().expect("a row of `ql`");
            let high: &[u8; 32] = record[128 + 32 * half..].first_chunk().expect("a row of `qh`");
            let scales: &[u8; 8] = record[SCALES + 8 * half..].first_chunk().expect("half of the scales");
            for (j, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let scale = scale * f32::from(scales[j].cast_signed());
                let at = 16 * j;
                for i in 0..16 {
                    let low = low[at % 64 + i] >> (4 * (at / 64)) & 15;
                    let high = high[at % 32 + i] >> (2 * (at / 32)) & 3;
                    values[i] = scale * (i32::from(low | high << 4) - 32) as f32;
                }
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 210]) {
        const CODES: (i32, i32) = (-32, 31);
        let (blocks, _) = values.as_chunks::<16>();
        let mut fits = [0.0; 16];
        for (fit, block) in fits.iter_mut().zip(blocks) {
            *fit = symmetric(block, CODES.0, CODES.1);
        }
        let step = put_f16(record, SCALE, extreme(&fits) / -128.0);
        let mut codes = [0; 256];
        for (j, block) in blocks.iter().enumerate() {
            let scale = symmetric_code(block, fits[j], step, (-128, 127), CODES);
            record[SCALES + j] = (scale as i8).cast_unsigned();
            let inverse = inverse(step * scale as f32);
            for (code, x) in codes[16 * j..].iter_mut().zip(block) {
                *code = (nearest(x * inverse, CODES.0, CODES.1) + 32) as u8;
            }
        }
        for (half, codes) in codes.as_chunks::<128>().0.iter().enumerate() {
            for i in 0..64 {
                record[64 * half + i] = (codes[i] & 15) | codes[64 + i] << 4;
            }
            for i in 0..32 {
                record[128 + 32 * half + i] =
                    (0..4).fold(0, |bits, j| bits | codes[32 * j + i] >> 4 << (2 * j));
            }
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = with_bit_rows(record, "low_bits", &NIBBLES, 64, 2);
        let record = with_bit_rows(record, "high_bits", &QUARTERS, 32, 2);
        record.tensor("scales", Int8, &[16]).field("scale", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let low = body.joined_components(&["low_bits"], &["low", "high"], 2);
        let high = body.joined_components(&["high_bits"], &names(&QUARTERS), 2);
        let codes = body.with_high_bits(&low, &high, 4);
        let codes = body.minus(&codes, 32.0);
        let codes = body.reshape(&codes, &[0, 16, 16]);
        let scales = body.float_field(&["scales"]);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        let scales = body.mul(&scale, &scales);
        let scales = body.reshape(&scales, &[0, 16, 1]);
        let values = body.mul(&scales, &codes);
        body.reshape(&values, &[0, 256])
    }
}

impl Unpack for Q6K {
    const RECORD_BYTES: usize = 210;
    const RECORD_BLOCKS: usize = 8;
    const MAX: u8 = 63;
    const OFFSET: i32 = 32;
    const GROUPS: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        [registers(simd, records, half, 0), registers(simd, records, half, 16)]
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        unpack::splat_f16(simd, records, SCALE)
    }
    #[inline(always)]
    fn groups(records: &[u8]) -> [u8; 16] {
        *unpack::bytes(records, SCALES)
    }
}

/// The codes of 16 elements from element `at` on of each block of half `half`.
#[inline(always)]
fn registers<S: Simd>(simd: S, record: &[u8], half: usize, at: usize) -> S::Codes {
    let low = 64 * half + at;
    let (a, b) = (unpack::bytes(record, low), unpack::bytes(record, low + 32));
    let low = simd.shr_quarters::<0, 0, 4, 4>(simd.load_quarters([a, b, a, b]));
    let high = unpack::bytes(record, 128 + 32 * half + at);
    simd.six_bits(low, simd.load_quarters([high; 4]))
}
