//! NF4, the 4-bit NormalFloat of QLoRA: 64 elements, one scale (the largest magnitude), 4-bit indices into a table of
//! quantiles of the normal distribution; `scale * table[index]`.

use heirloom_mem::DType::Float;
use heirloom_mem::Tensor;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::fit::{extreme, inverse};
use crate::format::Format;

/// The format: `scale` (`absmax`), then 32 bytes with two codes each, the first in the high nibble, as bitsandbytes
/// packs them.
#[derive(Clone, Copy, Debug)]
pub struct Nf4;

pub(crate) static FORMAT: Format = Format::block::<Nf4, 36, 64>("nf4", 1_100_601, None);

/// The numbers of the codes: QLoRA (Dettmers et al. 2023), appendix E.
const TABLE: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

impl Block<36, 64> for Nf4 {
    fn decode(record: &[u8; 36], values: &mut [f32; 64]) {
        let (scale, codes) = record.split_first_chunk::<4>().expect("4 of 36 bytes");
        let scale = f32::from_le_bytes(*scale);
        for (byte, pair) in codes.iter().zip(values.as_chunks_mut::<2>().0) {
            *pair = [scale * TABLE[usize::from(byte >> 4)], scale * TABLE[usize::from(byte & 15)]];
        }
    }

    fn encode(values: &[f32; 64], record: &mut [u8; 36]) {
        let scale = extreme(values).abs();
        let inverse = inverse(scale);
        let (head, codes) = record.split_first_chunk_mut::<4>().expect("4 of 36 bytes");
        *head = scale.to_le_bytes();
        for (byte, pair) in codes.iter_mut().zip(values.as_chunks::<2>().0) {
            *byte = index(pair[0] * inverse) << 4 | index(pair[1] * inverse);
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let table = Tensor::from_vec(&[16], TABLE.into()).expect("16 numbers");
        record
            .field("scale", Float)
            .bits("codes", &[("second", 4), ("first", 4)], 32)
            .constant("table", table)
    }

    fn decoder(body: &mut Body) -> Val {
        let first = body.field(&["codes", "first"]);
        let second = body.field(&["codes", "second"]);
        let [first, second] = [first, second].map(|codes| body.reshape(&codes, &[0, 32, 1]));
        let codes = body.concat(&[&first, &second], 2);
        let codes = body.reshape(&codes, &[0, 64]);
        let numbers = body.lookup(&["table"], &codes);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &numbers)
    }
}

/// The index of the number in the table that is nearest to `x`.
fn index(x: f32) -> u8 {
    TABLE.windows(2).filter(|pair| x > (pair[0] + pair[1]) / 2.0).count() as u8
}
