//! The 12 bytes in which Q4_K and Q5_K store eight 6-bit scales and eight 6-bit minima.
//!
//! Byte `j` of the first four holds scale `j` in its low 6 bits and the high 2 bits of scale `j + 4` above them; the
//! next four hold the minima in the same way; byte `j` of the last four holds the low 4 bits of scale `j + 4` below the
//! low 4 bits of minimum `j + 4`.

use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::body::{Body, Val};
use crate::fit::{affine, affine_codes, inverse, nearest};
use crate::half_floats::put_f16;
use crate::unpack;

/// The scales and the minima.
pub(crate) fn unpack(packed: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut minima) = ([0; 8], [0; 8]);
    for j in 0..4 {
        scales[j] = packed[j] & 63;
        minima[j] = packed[4 + j] & 63;
        scales[4 + j] = (packed[8 + j] & 15) | (packed[j] >> 6) << 4;
        minima[4 + j] = packed[8 + j] >> 4 | (packed[4 + j] >> 6) << 4;
    }
    (scales, minima)
}

/// The bytes for scales and minima below 64.
pub(crate) fn pack(scales: &[u8; 8], minima: &[u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for j in 0..4 {
        packed[j] = scales[j] | (scales[4 + j] >> 4) << 6;
        packed[4 + j] = minima[j] | (minima[4 + j] >> 4) << 6;
        packed[8 + j] = (scales[4 + j] & 15) | (minima[4 + j] & 15) << 4;
    }
    packed
}

/// `record` with the three fields that declare the bytes.
pub(crate) fn declare(record: StructBuilder) -> StructBuilder {
    record
        .bits("scales", &[("first_six", 6), ("second_high", 2)], 4)
        .bits("minima", &[("first_six", 6), ("second_high", 2)], 4)
        .bits("second_low", &[("scale", 4), ("minimum", 4)], 4)
}

/// The scales times `scale`, or the minima times `minimum`, of each sub-block as FLOAT: [records, 8, 1].
pub(crate) fn decoder(body: &mut Body, field: &str, second_low: &str, factor: &str) -> Val {
    let first = body.float_field(&[field, "first_six"]);
    let low = body.float_field(&["second_low", second_low]);
    let high = body.float_field(&[field, "second_high"]);
    let second = body.with_high_bits(&low, &high, 4);
    let codes = body.concat(&[&first, &second], 1);
    let factor = body.float_field(&[factor]);
    let factor = body.column(&factor);
    let product = body.mul(&factor, &codes);
    body.reshape(&product, &[0, 8, 1])
}

/// The first 16 bytes of a Q4_K or Q5_K record for `values` with codes in `0..=highest`, and those codes.
pub(crate) fn encode(values: &[f32; 256], highest: i32, record: &mut [u8]) -> [u8; 256] {
    let (blocks, _) = values.as_chunks::<32>();
    let mut fits = [(0.0f32, 0.0f32); 8];
    for (fit, block) in fits.iter_mut().zip(blocks) {
        *fit = affine(block, highest);
    }
    let (scale, minimum) = fits.iter().fold((0.0f32, 0.0f32), |(s, m), fit| (s.max(fit.0), m.max(fit.1)));
    let scale = put_f16(record, 0, scale / 63.0);
    let minimum = put_f16(record, 2, minimum / 63.0);
    let (mut scales, mut minima) = ([0; 8], [0; 8]);
    let mut codes = [0; 256];
    for (j, block) in blocks.iter().enumerate() {
        (scales[j], minima[j]) = affine_codes(block, fits[j], (scale, minimum), 63, highest);
        let inverse = inverse(scale * f32::from(scales[j]));
        let offset = minimum * f32::from(minima[j]);
        for (code, x) in codes[32 * j..].iter_mut().zip(block) {
            *code = nearest((x + offset) * inverse, 0, highest) as u8;
        }
    }
    for (byte, packed) in record[4..16].iter_mut().zip(pack(&scales, &minima)) {
        *byte = packed;
    }
    codes
}

const WORD: u64 = 0x0101_0101_0101_0101;

#[inline(always)]
fn words(record: &[u8]) -> [u64; 3] {
    let word = |at| u64::from(u32::from_le_bytes(*unpack::bytes(record, at)));
    [word(4), word(8), word(12)]
}

/// The products of `scale` and the scales of a Q4_K or Q5_K record, in the lanes of their blocks.
#[inline(always)]
pub(crate) fn block_scales<S: Simd>(simd: S, record: &[u8]) -> S::F32x8 {
    let [scales, _, low] = words(record);
    let second = (low & (15 * WORD)) | (scales >> 2 & (48 * WORD));
    let scales = (scales & (63 * WORD)) | second << 32;
    simd.mul_f32x8(unpack::splat_f16(simd, record, 0), simd.block_u8(scales))
}

/// The products of `-minimum` and the minima of a Q4_K or Q5_K record, in the lanes of their blocks.
#[inline(always)]
pub(crate) fn block_minima<S: Simd>(simd: S, record: &[u8]) -> S::F32x8 {
    let [_, minima, low] = words(record);
    let second = (low >> 4 & (15 * WORD)) | (minima >> 2 & (48 * WORD));
    let minima = (minima & (63 * WORD)) | second << 32;
    let minimum = simd.mul_f32x8(unpack::splat_f16(simd, record, 2), simd.splat_f32x8(-1.0));
    simd.mul_f32x8(minimum, simd.block_u8(minima))
}
