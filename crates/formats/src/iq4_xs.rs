//! GGUF IQ4_XS: 256 elements in 8 sub-blocks with 6-bit scales (offset 32), 4-bit indices into IQ4_NL's table;
//! `scale * (scales[j] - 32) * table[index]`.

use heirloom_mem::DType::Float16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{NIBBLES, with_bit_rows};
use crate::fit::{extreme, inverse, nearest, snap_error};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::iq4_nl::{TABLE, fit, index, snap, table};

/// The format: `scale` (`d`), the high 2 bits of each sub-block's scale (`scales_h`), the low 4 bits (`scales_l`), then
/// 8 rows of 16 bytes (`qs`), one a sub-block, low nibbles first.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Xs;

pub(crate) static FORMAT: Format = Format::block::<Iq4Xs, 136, 256>("iq4_xs", 1_002_301, Some(23));

impl Block<136, 256> for Iq4Xs {
    fn decode(record: &[u8; 136], values: &mut [f32; 256]) {
        let (head, codes) = record.split_first_chunk::<8>().expect("8 of 136 bytes");
        let scale = f16_at(head, 0);
        let high = u16::from_le_bytes([head[2], head[3]]);
        for (j, (codes, values)) in
            codes.as_chunks::<16>().0.iter().zip(values.as_chunks_mut::<32>().0).enumerate()
        {
            let low = head[4 + j / 2] >> (4 * (j % 2)) & 15;
            let packed = i32::from(low) | i32::from(high >> (2 * j) & 3) << 4;
            let scale = scale * (packed - 32) as f32;
            for i in 0..16 {
                let byte = usize::from(codes[i]);
                values[i] = scale * f32::from(TABLE[byte & 15]);
                values[16 + i] = scale * f32::from(TABLE[byte >> 4]);
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 136]) {
        let (blocks, _) = values.as_chunks::<32>();
        let mut fits = [0.0; 8];
        for (scale, block) in fits.iter_mut().zip(blocks) {
            *scale = fit(block);
        }
        let step = put_f16(record, 0, extreme(&fits) / -32.0);
        record[2..8].fill(0);
        for (j, block) in blocks.iter().enumerate() {
            let code = scale_code(block, fits[j], step);
            let packed = (code + 32) as u8;
            record[2 + j / 4] |= packed >> 4 << (2 * (j % 4));
            record[4 + j / 2] |= (packed & 15) << (4 * (j % 2));
            let inverse = inverse(step * code as f32);
            for i in 0..16 {
                record[8 + 16 * j + i] = index(block[i] * inverse) | index(block[16 + i] * inverse) << 4;
            }
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = record.field("scale", Float16).bits("scales_high", &[("bits", 2)], 8).bits(
            "scales_low",
            &[("bits", 4)],
            8,
        );
        with_bit_rows(record, "codes", &NIBBLES, 16, 8).constant("table", table())
    }

    fn decoder(body: &mut Body) -> Val {
        let low = body.float_field(&["scales_low", "bits"]);
        let high = body.float_field(&["scales_high", "bits"]);
        let scales = body.with_high_bits(&low, &high, 4);
        let scales = body.minus(&scales, 32.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        let scales = body.mul(&scale, &scales);
        let scales = body.reshape(&scales, &[0, 8, 1]);
        let parts = [body.field(&["codes", "low"]), body.field(&["codes", "high"])];
        let codes = body.concat(&[&parts[0], &parts[1]], 2);
        let numbers = body.lookup(&["table"], &codes);
        let values = body.mul(&scales, &numbers);
        body.reshape(&values, &[0, 256])
    }
}

/// The code in -32..=31 for a sub-block's scale: the one around the nearest that loses least.
fn scale_code(values: &[f32], scale: f32, step: f32) -> i32 {
    let middle = nearest(scale * inverse(step), -32, 31);
    let error = |code: i32| snap_error(values, step * code as f32, snap);
    let candidates = (middle - 1).max(-32)..=(middle + 1).min(31);
    candidates.min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(middle)
}
