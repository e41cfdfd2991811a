//! GGUF Q3_K: 256 elements in 16 sub-blocks with 6-bit scales (offset 32), 3-bit codes with offset 4;
//! `scale * (scales[j] - 32) * (code - 4)`.

use heirloom_mem::DType::Float16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{NIBBLES, QUARTERS, SINGLE_BITS, names, with_bit_rows};
use crate::fit::{extreme, inverse, nearest, symmetric, symmetric_code};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::q2_k::put_quarter_rows;

/// The format: 32 bytes whose bit `r` is the third bit of elements `32r` to `32r + 31` (`hmask`), 2 rows of 32 bytes
/// with the low 2 bits (`qs`) as in Q2_K, 12 bytes of scales, then `scale` (`d`). Of the scales, 8 bytes hold the low 4
/// bits, scale `j` low and `j + 8` high; byte `j` of the other 4 holds the high 2 bits of scales `j`, `j + 4`, `j + 8`
/// and `j + 12`, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct Q3K;

pub(crate) static FORMAT: Format = Format::block::<Q3K, 110, 256>("q3_k", 1_001_101, Some(11));

const SCALES: usize = 96;
const SCALE: usize = 108;

impl Block<110, 256> for Q3K {
    fn decode(record: &[u8; 110], values: &mut [f32; 256]) {
        let (high, rest) = record.split_first_chunk::<32>().expect("32 of 110 bytes");
        let scale = f16_at(record, SCALE);
        for (j, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let packed = (record[SCALES + j % 8] >> (4 * (j / 8)) & 15)
                | (record[SCALES + 8 + j % 4] >> (2 * (j / 4)) & 3) << 4;
            let scale = scale * (i32::from(packed) - 32) as f32;
            let at = 16 * (j % 2);
            let low: &[u8; 16] = rest[32 * (j / 8) + at..].first_chunk().expect("half of a row");
            let high: &[u8; 16] = high[at..].first_chunk().expect("half of the row");
            for i in 0..16 {
                let code = (low[i] >> (2 * (j % 8 / 2)) & 3) | (high[i] >> (j / 2) & 1) << 2;
                values[i] = scale * (i32::from(code) - 4) as f32;
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 110]) {
        const CODES: (i32, i32) = (-4, 3);
        let (blocks, _) = values.as_chunks::<16>();
        let mut fits = [0.0; 16];
        for (fit, block) in fits.iter_mut().zip(blocks) {
            *fit = symmetric(block, CODES.0, CODES.1);
        }
        let step = put_f16(record, SCALE, extreme(&fits) / -32.0);
        record[SCALES..SCALE].fill(0);
        let mut codes = [0; 256];
        for (j, block) in blocks.iter().enumerate() {
            let scale = symmetric_code(block, fits[j], step, (-32, 31), CODES);
            let packed = (scale + 32) as u8;
            record[SCALES + j % 8] |= (packed & 15) << (4 * (j / 8));
            record[SCALES + 8 + j % 4] |= packed >> 4 << (2 * (j / 4));
            let inverse = inverse(step * scale as f32);
            for (code, x) in codes[16 * j..].iter_mut().zip(block) {
                *code = (nearest(x * inverse, CODES.0, CODES.1) + 4) as u8;
            }
        }
        for i in 0..32 {
            record[i] = (0..8).fold(0, |bits, r| bits | codes[32 * r + i] >> 2 << r);
        }
        put_quarter_rows(&codes, &mut record[32..96]);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = record.bits("high_bits", &SINGLE_BITS, 32);
        with_bit_rows(record, "low_bits", &QUARTERS, 32, 2)
            .bits("scales_low", &NIBBLES, 8)
            .bits("scales_high", &QUARTERS, 4)
            .field("scale", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let quarters = names(&QUARTERS);
        let low = body.joined_components(&["low_bits"], &quarters, 2);
        let low = body.reshape(&low, &[0, 256]);
        let high = body.joined_components(&["high_bits"], &names(&SINGLE_BITS), 1);
        let codes = body.with_high_bits(&low, &high, 2);
        let codes = body.minus(&codes, 4.0);
        let codes = body.reshape(&codes, &[0, 16, 16]);
        let low = body.joined_components(&["scales_low"], &["low", "high"], 1);
        let high = body.joined_components(&["scales_high"], &quarters, 1);
        let scales = body.with_high_bits(&low, &high, 4);
        let scales = body.minus(&scales, 32.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        let scales = body.mul(&scale, &scales);
        let scales = body.reshape(&scales, &[0, 16, 1]);
        let values = body.mul(&scales, &codes);
        body.reshape(&values, &[0, 256])
    }
}
