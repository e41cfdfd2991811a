//! GGUF TQ1_0: 256 elements of -1, 0 and 1, five to a byte, one scale; `scale * (digit - 1)`.
//!
//! A byte is a fraction of 256 whose base-3 digits are the codes: digit `k` is the integer part of 3 times the fraction
//! that remains after multiplying with `3^k`, modulo 1.

use heirloom_mem::DType::{Float16, Int32, Uint8};
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Attr, Body, Val};
use crate::fit::{extreme, inverse};
use crate::format::Format;
use crate::half_floats::{f16_at, put_f16};

/// The format: 32 bytes with digits of elements `i`, `i + 32`, … `i + 128`; 16 bytes with digits of elements `160 + i`,
/// `176 + i`, … (`qs`); 4 bytes with four digits each, of elements `240 + i`, `244 + i`, … (`qh`); then `scale` (`d`).
#[derive(Clone, Copy, Debug)]
pub struct Tq1_0;

pub(crate) static FORMAT: Format = Format::block::<Tq1_0, 54, 256>("tq1_0", 1_003_401, Some(34));

/// First byte, bytes and digits a byte of each part; the elements follow one another.
const PARTS: [(usize, usize, usize); 3] = [(0, 32, 5), (32, 16, 5), (48, 4, 4)];
const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
const NAMES: [&str; 3] = ["digits", "more_digits", "last_digits"];

impl Block<54, 256> for Tq1_0 {
    fn decode(record: &[u8; 54], values: &mut [f32; 256]) {
        let scale = f16_at(record, 52);
        let mut values = values.iter_mut();
        for (first, count, digits) in PARTS {
            for power in &POWERS[..digits] {
                // Bytes first: an exhausted zip has then taken no value.
                for (byte, value) in record[first..first + count].iter().zip(values.by_ref()) {
                    let digit = (u16::from(byte.wrapping_mul(*power)) * 3) >> 8;
                    *value = scale * (i32::from(digit) - 1) as f32;
                }
            }
        }
    }

    fn encode(values: &[f32; 256], record: &mut [u8; 54]) {
        let scale = extreme(values).abs();
        let inverse = inverse(scale);
        put_f16(record, 52, scale);
        let mut at = 0;
        for (first, count, digits) in PARTS {
            for i in 0..count {
                let digit = |k: usize| ((values[at + count * k + i] * inverse).round() + 1.0) as u16;
                let sum = (0..digits).fold(0, |sum, k| sum * 3 + digit(k)) * if digits == 4 { 3 } else { 1 };
                // The smallest fraction of 256 whose digits are these.
                record[first + i] = (sum * 256).div_ceil(243) as u8;
            }
            at += count * digits;
        }
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        let record = PARTS
            .iter()
            .zip(NAMES)
            .fold(record, |record, (&(_, count, _), name)| record.tensor(name, Uint8, &[count]));
        record.field("scale", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let powers = body.ints(&POWERS.map(i64::from));
        let powers = body.cast(&powers, Int32);
        let [byte_values, three] = [256, 3].map(|n| body.int32(n));
        let mut parts = Vec::new();
        for ((_, count, digits), name) in PARTS.into_iter().zip(NAMES) {
            let bytes = body.field(&[name]);
            let bytes = body.cast(&bytes, Int32);
            let bytes = body.reshape(&bytes, &[0, 1, count as i64]);
            let [start, end] = [[0], [digits as i64]].map(|n| body.ints(&n));
            let powers = body.op("Slice", &[&powers, &start, &end], &[]);
            let powers = body.reshape(&powers, &[-1, 1]);
            let shifted = body.mul(&bytes, &powers);
            let fraction = body.op("Mod", &[&shifted, &byte_values], &[("fmod", Attr::Int(0))]);
            let tripled = body.mul(&fraction, &three);
            let digit = body.op("Div", &[&tripled, &byte_values], &[]);
            parts.push(body.reshape(&digit, &[0, (count * digits) as i64]));
        }
        let digits = body.concat(&parts.iter().collect::<Vec<_>>(), 1);
        let digits = body.cast(&digits, heirloom_mem::DType::Float);
        let codes = body.minus(&digits, 1.0);
        let scale = body.float_field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &codes)
    }
}
