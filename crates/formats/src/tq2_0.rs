//! GGUF TQ2_0: 256 elements of -1, 0 and 1 as 2-bit codes with offset 1, one scale; `scale * (code - 1)`.

use heirloom_mem::DType::Float16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::{QUARTERS, names, with_bit_rows};
use crate::fit::{extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};
use crate::q2_k::put_quarter_rows;

/// The format: 2 rows of 32 bytes (`qs`) as in Q2_K, then `scale` (`d`).
#[derive(Clone, Copy, Debug)]
pub struct Tq2_0;

pub(crate) static FORMAT: Format = Format::block::<Tq2_0, 66, 256>("tq2_0", 1_003_501, Some(35));

impl Block<66, 256> for Tq2_0 {
    fn decode(record: &[u8; 66], values: &mut [f32; 256]) {
        let scale = f16_at(record, 64);
        for (j, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let codes: &[u8; 32] = record[32 * (j / 4)..].first_chunk().expect("one of 2 rows");
            for i in 0..32 {
                values[i] = scale * (i32::from(codes[i] >> (2 * (j % 4)) & 3) - 1) as f32;
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 66]) {
        let scale = extreme(values).abs();
        let inverse = inverse(scale);
        put_f16(record, 64, scale);
        let codes = values.map(|x| ((x * inverse).round() + 1.0) as u8);
        put_quarter_rows(&codes, &mut record[..64]);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        with_bit_rows(record, "codes", &QUARTERS, 32, 2).field("scale", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let codes = body.joined_components(&["codes"], &names(&QUARTERS), 2);
        let codes = body.reshape(&codes, &[0, 256]);
        let codes = body.minus(&codes, 1.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &codes)
    }
}
