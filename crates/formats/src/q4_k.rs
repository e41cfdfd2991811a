//! GGUF Q4_K: 256 elements in 8 sub-blocks with 6-bit scales and minima, 4-bit codes;
//! `scale * scales[j] * code - minimum * minima[j]`.

use heirloom_mem::DType::Float16;
use heirloom_simd::Simd;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{NIBBLES, with_bit_rows};
use crate::format::Format;
use crate::half_floats::f16_at;
use crate::k_scales;
use crate::unpack::{self, Unpack};

/// The format: `scale` (`d`), `minimum` (`dmin`), 12 bytes of 6-bit scales and minima, then 4 rows of 32 bytes (`qs`).
/// The low nibbles of row `r` are sub-block `2r`, the high ones `2r + 1`.
#[derive(Clone, Copy, Debug)]
pub struct Q4K;

pub(crate) static FORMAT: Format = Format::block::<Q4K, 144, 256>("q4_k", 1_001_201, Some(12));

impl Block<144, 256> for Q4K {
    fn decode(record: &[u8; 144], values: &mut [f32; 256]) {
        let (head, codes) = record.split_first_chunk::<16>().expect("16 of 144 bytes");
        let (scale, minimum) = (f16_at(head, 0), f16_at(head, 2));
        let (scales, minima) = k_scales::unpack(head.last_chunk().expect("12 of 16 bytes"));
        for (row, (codes, values)) in
            codes.as_chunks::<32>().0.iter().zip(values.as_chunks_mut::<64>().0).enumerate()
        {
            let (low, high) = (2 * row, 2 * row + 1);
            let (low_scale, low_minimum) = (scale * f32::from(scales[low]), minimum * f32::from(minima[low]));
            let (high_scale, high_minimum) =
                (scale * f32::from(scales[high]), minimum * f32::from(minima[high]));
            for i in 0..32 {
                values[i] = low_scale * f32::from(codes[i] & 15) - low_minimum;
                values[32 + i] = high_scale * f32::from(codes[i] >> 4) - high_minimum;
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 144]) {
        let codes = k_scales::encode(values, 15, record);
        put_nibble_rows(&codes, &mut record[16..]);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = record.field("scale", Float16).field("minimum", Float16);
        let record = k_scales::declare(record);
        with_bit_rows(record, "codes", &NIBBLES, 32, 4)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.joined_components(&["codes"], &["low", "high"], 2);
        let codes = body.reshape(&codes, &[0, 8, 32]);
        let scale = k_scales::decoder(body, "scales", "scale", "scale");
        let minimum = k_scales::decoder(body, "minima", "minimum", "minimum");
        let scaled = body.mul(&scale, &codes);
        let values = body.sub(&scaled, &minimum);
        body.reshape(&values, &[0, 256])
    }
}

/// Stores the low 4 bits of codes as Q4_K and Q5_K do: row `r` of 32 bytes holds sub-block `2r` in its low nibbles and
/// `2r + 1` in its high ones.
pub(crate) fn put_nibble_rows(codes: &[u8; 256], bytes: &mut [u8]) {
    for (codes, bytes) in codes.as_chunks::<64>().0.iter().zip(bytes.as_chunks_mut::<32>().0) {
        for i in 0..32 {
            bytes[i] = (codes[i] & 15) | codes[32 + i] << 4;
        }
    }
}

impl Unpack for Q4K {
    const RECORD_BYTES: usize = 144;
    const RECORD_BLOCKS: usize = 8;
    const MAX: u8 = 15;
    const MINIMA: bool = true;

    fn format() -> &'static Format {
        &FORMAT
    }
    #[inline(always)]
    fn codes<S: Simd>(simd: S, records: &[u8], half: usize) -> [S::Codes; 2] {
        nibble_row_registers(simd, records, half, 16)
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

/// The low four bits of half `half` of Q4_K and Q5_K, whose 4 rows of 32 bytes begin at byte `at`.
#[inline(always)]
pub(crate) fn nibble_row_registers<S: Simd>(simd: S, record: &[u8], half: usize, at: usize) -> [S::Codes; 2] {
    let low = simd.splat(15);
    let of = at + 64 * half;
    let (a, b) = (unpack::bytes(record, of), unpack::bytes(record, of + 32));
    let first = simd.shr_quarters::<0, 4, 0, 4>(simd.load_quarters([a, a, b, b]));
    let (a, b) = (unpack::bytes(record, of + 16), unpack::bytes(record, of + 48));
    let last = simd.shr_quarters::<0, 4, 0, 4>(simd.load_quarters([a, a, b, b]));
    [simd.and(first, low), simd.and(last, low)]
}
