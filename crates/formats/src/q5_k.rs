//! GGUF Q5_K: 256 elements in 8 sub-blocks with 6-bit scales and minima, 5-bit codes;
//! `scale * scales[j] * code - minimum * minima[j]`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{NIBBLES, SINGLE_BITS, names, with_bit_rows};
use crate::format::Format;
use crate::half_floats::f16_at;
use crate::k_scales;
use crate::q4_k::{nibble_row_registers, put_nibble_rows};
use crate::unpack::{self, Unpack};

/// The format: `scale` (`d`), `minimum` (`dmin`), 12 bytes of 6-bit scales and minima, 32 bytes whose bit `j` is the
/// fifth bit of sub-block `j` (`qh`), then 4 rows of 32 bytes (`qs`) as in Q4_K.
#[derive(Clone, Copy, Debug)]
pub struct Q5K;

pub(crate) static FORMAT: Format = Format::block::<Q5K, 176, 256>("q5_k", 1_001_301, Some(13));

impl Block<176, 256> for Q5K {
    fn decode(record: &[u8; 176], values: &mut [f32; 256]) {
        let (head, rest) = record.split_first_chunk::<16>().expect("16 of 176 bytes");
        let (high, codes) = rest.split_first_chunk::<32>().expect("32 of 160 bytes");
        let (scale, minimum) = (f16_at(head, 0), f16_at(head, 2));
        let (scales, minima) = k_scales::unpack(head.last_chunk().expect("12 of 16 bytes"));
        for (j, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let codes: &[u8; 32] = codes[32 * (j / 2)..].first_chunk().expect("one of 4 rows");
            let shift = 4 * (j % 2);
            let scale = scale * f32::from(scales[j]);
            let minimum = minimum * f32::from(minima[j]);
            for i in 0..32 {
                let code = (codes[i] >> shift & 15) | (high[i] >> j & 1) << 4;
                values[i] = scale * f32::from(code) - minimum;
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 176]) {
        let codes = k_scales::encode(values, 31, record);
        for i in 0..32 {
            record[16 + i] = (0..8).fold(0, |bits, j| bits | (codes[32 * j + i] >> 4) << j);
        }
        put_nibble_rows(&codes, &mut record[48..]);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = record.field("scale", Float16).field("minimum", Float16);
        let record = k_scales::declare(record).bits("high_bits", &SINGLE_BITS, 32);
        with_bit_rows(record, "low_bits", &NIBBLES, 32, 4)
    }

    fn decoder(body: &mut Body) -> Val {
        let low = body.joined_components(&["low_bits"], &["low", "high"], 2);
        let low = body.reshape(&low, &[0, 8, 32]);
        let high = body.joined_components(&["high_bits"], &names(&SINGLE_BITS), 1);
        let high = body.reshape(&high, &[0, 8, 32]);
        let codes = body.with_high_bits(&low, &high, 4);
        let scale = k_scales::decoder(body, "scales", "scale", "scale");
        let minimum = k_scales::decoder(body, "minima", "minimum", "minimum");
        let scaled = body.mul(&scale, &codes);
        let values = body.sub(&scaled, &minimum);
        body.reshape(&values, &[0, 256])
    }
}

impl Unpack for Q5K {
    const RECORD_BYTES: usize = 176;
    const RECORD_BLOCKS: usize = 8;
    const MAX: u8 = 31;
    const MINIMA: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        let [first, last] = nibble_row_registers(simd, records, half, 48);
        [
            simd.or(first, fifth_bits(simd, records, half, 16)),
            simd.or(last, fifth_bits(simd, records, half, 32)),
        ]
    }
    #[inline(always)]
    fn scales<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        k_scales::block_scales(simd, records)
    }
    #[inline(always)]
    fn minima<S: Simd>(simd: S, records: &[u8]) -> S::F32x8 {
        k_scales::block_minima(simd, records)
    }
}

/// The fifth bits, in their places, of the 16 elements of each block of half `half` whose bits begin at byte `at`.
#[inline(always)]
fn fifth_bits<S: Simd>(simd: S, record: &[u8], half: usize, at: usize) -> S::Codes {
    let bits = simd.load_quarters([unpack::bytes(record, at); 4]);
    let bits =
        if half == 0 { simd.shl_quarters::<4, 3, 2, 1>(bits) } else { simd.shr_quarters::<0, 1, 2, 3>(bits) };
    simd.and(bits, simd.splat(16))
}
