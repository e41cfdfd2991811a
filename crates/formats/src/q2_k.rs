//! GGUF Q2_K: 256 elements in 16 sub-blocks with 4-bit scales and minima, 2-bit codes;
//! `scale * scales[j] * code - minimum * minima[j]`.

use heirloom_mem::DType::Float16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{QUARTERS, names, with_bit_rows};
use crate::fit::{affine, affine_codes, inverse, nearest};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};

/// The format: 16 bytes of 4-bit scales (low) and minima (high), 2 rows of 32 bytes (`qs`) whose bit pairs, lowest
/// first, are 32 elements each, then `scale` (`d`) and `minimum` (`dmin`).
#[derive(Clone, Copy, Debug)]
pub struct Q2K;

pub(crate) static FORMAT: Format = Format::block::<Q2K, 84, 256>("q2_k", 1_001_001, Some(10));

impl Block<84, 256> for Q2K {
    fn decode(record: &[u8; 84], values: &mut [f32; 256]) {
        let (scales, rest) = record.split_first_chunk::<16>().expect("16 of 84 bytes");
        let (codes, _) = rest.split_first_chunk::<64>().expect("64 of 68 bytes");
        let (scale, minimum) = (f16_at(record, 80), f16_at(record, 82));
        for (j, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = scale * f32::from(scales[j] & 15);
            let minimum = minimum * f32::from(scales[j] >> 4);
            let codes: &[u8; 16] = codes[32 * (j / 8) + 16 * (j % 2)..].first_chunk().expect("half of a row");
            let shift = 2 * (j % 8 / 2);
            for i in 0..16 {
                values[i] = scale * f32::from(codes[i] >> shift & 3) - minimum;
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 84]) {
        let (blocks, _) = values.as_chunks::<16>();
        let mut fits = [(0.0f32, 0.0f32); 16];
        for (fit, block) in fits.iter_mut().zip(blocks) {
            *fit = affine(block, 3);
        }
        let (scale, minimum) = fits.iter().fold((0.0f32, 0.0f32), |(s, m), fit| (s.max(fit.0), m.max(fit.1)));
        let scale = put_f16(record, 80, scale / 15.0);
        let minimum = put_f16(record, 82, minimum / 15.0);
        let mut codes = [0; 256];
        for (j, block) in blocks.iter().enumerate() {
            let (s, m) = affine_codes(block, fits[j], (scale, minimum), 15, 3);
            record[j] = s | m << 4;
            let inverse = inverse(scale * f32::from(s));
            let offset = minimum * f32::from(m);
            for (code, x) in codes[16 * j..].iter_mut().zip(block) {
                *code = nearest((x + offset) * inverse, 0, 3) as u8;
            }
        }
        put_quarter_rows(&codes, &mut record[16..80]);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = record.bits("scales", &[("scale", 4), ("minimum", 4)], 16);
        let record = with_bit_rows(record, "codes", &QUARTERS, 32, 2);
        record.field("scale", Float16).field("minimum", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.joined_components(&["codes"], &names(&QUARTERS), 2);
        let codes = body.reshape(&codes, &[0, 16, 16]);
        let mut product = |factor: &str| {
            let codes = body.float_field(&["scales", factor]);
            let factor = body.float_field(&[factor]);
            let factor = body.column(&factor);
            let product = body.mul(&factor, &codes);
            body.reshape(&product, &[0, 16, 1])
        };
        let scale = product("scale");
        let minimum = product("minimum");
        let scaled = body.mul(&scale, &codes);
        let values = body.sub(&scaled, &minimum);
        body.reshape(&values, &[0, 256])
    }
}

/// Stores 2-bit codes as Q2_K, Q3_K and TQ2_0 do: rows of 32 bytes, each with 4 times 32 elements, lowest bits first.
pub(crate) fn put_quarter_rows(codes: &[u8; 256], bytes: &mut [u8]) {
    for (codes, bytes) in codes.as_chunks::<128>().0.iter().zip(bytes.as_chunks_mut::<32>().0) {
        for i in 0..32 {
            bytes[i] = (0..4).fold(0, |bits, j| bits | (codes[32 * j + i] & 3) << (2 * j));
        }
    }
}
