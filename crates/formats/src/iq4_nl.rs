//! GGUF IQ4_NL: 32 elements, one scale, 4-bit indices into a table of 16 numbers; `scale * table[index]`.

use heirloom_mem::DType::Float16;
use heirloom_mem::Tensor;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::{best_scale, extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};

/// The format: `scale` (`d`), then 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Iq4Nl;

pub(crate) static FORMAT: Format = Format::block::<Iq4Nl, 18, 32>("iq4_nl", 1_002_001, Some(20));

/// The numbers that the codes of IQ4_NL and IQ4_XS stand for, ascending.
pub(crate) const TABLE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

impl Block<18, 32> for Iq4Nl {
    fn decode(record: &[u8; 18], values: &mut [f32; 32]) {
        let scale = f16_at(record, 0);
        for i in 0..16 {
            let byte = usize::from(record[2 + i]);
            values[i] = scale * f32::from(TABLE[byte & 15]);
            values[16 + i] = scale * f32::from(TABLE[byte >> 4]);
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 18]) {
        let scale = put_f16(record, 0, fit(values));
        let inverse = inverse(scale);
        for i in 0..16 {
            record[2 + i] = index(values[i] * inverse) | index(values[16 + i] * inverse) << 4;
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("scale", Float16).bits("codes", &NIBBLES, 16).constant("table", table())
    }

    fn decoder(body: &mut Body) -> Val {
        let parts = [body.field(&["codes", "low"]), body.field(&["codes", "high"])];
        let codes = body.concat(&[&parts[0], &parts[1]], 1);
        let numbers = body.lookup(&["table"], &codes);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &numbers)
    }
}

/// The table as a constant of the declaration.
pub(crate) fn table() -> Tensor {
    Tensor::from_vec(&[16], TABLE.into()).expect("16 numbers")
}

/// Halfway between each number of the table and the next.
const MIDDLES: [f32; 15] = {
    let mut middles = [0.0; 15];
    let mut i = 0;
    while i < 15 {
        middles[i] = (TABLE[i] as f32 + TABLE[i + 1] as f32) / 2.0;
        i += 1;
    }
    middles
};

/// The index of the number in the table that is nearest to `x`.
pub(crate) fn index(x: f32) -> u8 {
    MIDDLES.iter().map(|&middle| u8::from(x > middle)).sum()
}

/// The number in the table that is nearest to `x`.
pub(crate) fn snap(x: f32) -> f32 {
    f32::from(TABLE[usize::from(index(x))])
}

/// The scale with which the table serves `values` best; 0 where all of them are 0.
pub(crate) fn fit(values: &[f32]) -> f32 {
    let extreme = extreme(values);
    if extreme == 0.0 {
        return 0.0;
    }
    best_scale(values, extreme / f32::from(TABLE[0]), snap)
}
