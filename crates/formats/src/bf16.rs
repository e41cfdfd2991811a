//! GGUF BF16: one element a record, a BFLOAT16 number.

use half::bf16;
use heirloom_mem::DType::BFloat16;
use heirloom_types::StructBuilder;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;

/// The format: the number.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;

pub(crate) static FORMAT: Format = Format::block::<Bf16, 2, 1>("bf16", 1_003_001, Some(30));

impl Block<2, 1> for Bf16 {
    fn decode(record: &[u8; 2], values: &mut [f32; 1]) {
        values[0] = bf16::from_le_bytes(*record).to_f32();
    }

    fn encode(values: &[f32; 1], record: &mut [u8; 2]) {
        *record = bf16::from_f32(values[0]).to_le_bytes();
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        record.field("value", BFloat16)
    }

    fn decoder(body: &mut Body) -> Val {
        let value = body.float_field(&["value"]);
        body.column(&value)
    }
}
