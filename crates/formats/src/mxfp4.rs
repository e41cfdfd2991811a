//! GGUF MXFP4: 32 elements, a power of two, 4-bit floats; `2^(scale - 128) * table[code]`, where the table holds the
//! doubled E2M1 numbers of the OCP Microscaling (MX) specification 1.0.
//!
//! GGUF has no NaN here: the scale 255 means 2^127. [`crate::ocp_mxfp4`] is the specification's own format.

use heirloom_mem::DType::Float8E8M0;
use heirloom_mem::Tensor;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::declare::NIBBLES;
use crate::fit::extreme;
use crate::format::Format;

/// The format: `scale` (`e`), then 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31 (`qs`).
#[derive(Clone, Copy, Debug)]
pub struct Mxfp4;

pub(crate) static FORMAT: Format = Format::block::<Mxfp4, 17, 32>("mxfp4", 1_003_901, Some(39));

/// Twice the numbers of E2M1, by code.
const TABLE: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

impl Block<17, 32> for Mxfp4 {
    fn decode(record: &[u8; 17], values: &mut [f32; 32]) {
        let scale = half_power(record[0]);
        for i in 0..16 {
            let byte = usize::from(record[1 + i]);
            values[i] = scale * f32::from(TABLE[byte & 15]);
            values[16 + i] = scale * f32::from(TABLE[byte >> 4]);
        }
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 17]) {
        // The largest magnitude of E2M1, 6, has the exponent 2.
        let exponent = (extreme(values).abs().to_bits() >> 23).saturating_sub(2) as u8;
        record[0] = exponent;
        let scale = half_power(exponent);
        for i in 0..16 {
            record[1 + i] = nearest_code(values[i], scale) | nearest_code(values[16 + i], scale) << 4;
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let table = Tensor::from_vec(&[16], TABLE.into()).expect("16 numbers");
        record.field("scale", Float8E8M0).bits("codes", &NIBBLES, 16).constant("table", table)
    }

    fn decoder(body: &mut Body) -> Val {
        let parts = [body.field(&["codes", "low"]), body.field(&["codes", "high"])];
        let codes = body.concat(&[&parts[0], &parts[1]], 1);
        let numbers = body.lookup(&["table"], &codes);
        let power = body.float_field(&["scale"]);
        let half = body.float(0.5);
        let half_power = body.mul(&power, &half);
        let is_nan = body.op("IsNaN", &[&power], &[]);
        let largest = body.float(2f32.powi(127));
        let scale = body.op("Where", &[&is_nan, &largest, &half_power], &[]);
        let scale = body.column(&scale);
        body.mul(&scale, &numbers)
    }
}

/// `2^(exponent - 128)`.
fn half_power(exponent: u8) -> f32 {
    f32::from_bits(match exponent {
        0 => 1 << 21,
        1 => 1 << 22,
        _ => u32::from(exponent - 1) << 23,
    })
}

/// The code whose number times `scale` is nearest to `x`: the first of two that are as near.
fn nearest_code(x: f32, scale: f32) -> u8 {
    let mut best = (f32::INFINITY, 0);
    for (code, &number) in TABLE.iter().enumerate() {
        let error = (scale * f32::from(number) - x).abs();
        if error < best.0 {
            best = (error, code as u8);
        }
    }
    best.1
}
