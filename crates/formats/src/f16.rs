//! GGUF F16: one element a record, a FLOAT16 number.

use half::f16;
use heirloom_mem::DType::Float16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;

/// The format: the number.
#[derive(Clone, Copy, Debug)]
pub struct F16;

pub(crate) static FORMAT: Format = Format::block::<F16, 2, 1>("f16", 1_000_101, Some(1));

impl Block<2, 1> for F16 {
    fn decode(record: &[u8; 2], values: &mut [f32; 1]) {
        values[0] = f16::from_le_bytes(*record).to_f32();
    }

    fn encode(values: &[f32; 1], record: &mut [u8; 2]) {
        *record = f16::from_f32(values[0]).to_le_bytes();
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("value", Float16)
    }

    fn decoder(body: &mut Body) -> Val {
        let value = body.float_field(&["value"]);
        body.column(&value)
    }
}
