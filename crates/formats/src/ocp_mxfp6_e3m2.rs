//! OCP MXFP6 (E3M2): 32 elements, a power of two, 6-bit floats E3M2.

use heirloom_mem::DType;
use heirloom_types::StructBuilder;
use heirloom_types::floats::E3M2;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;
use crate::mx;

/// The format: `scale`, then 32 codes of 6 bits, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct OcpMxfp6E3M2;

pub(crate) static FORMAT: Format = Format::block::<OcpMxfp6E3M2, 25, 32>("ocp_mxfp6_e3m2", 1_100_401, None);

impl Block<25, 32> for OcpMxfp6E3M2 {
    fn decode(record: &[u8; 25], values: &mut [f32; 32]) {
        mx::decode(&E3M2, record, values);
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 25]) {
        mx::encode(&E3M2, values, record);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        mx::declare(record, DType::Float6E3M2)
    }

    fn decoder(body: &mut Body) -> Val {
        // FLOAT6 came with operator set 28.
        body.require_opset(28);
        mx::decoder(body)
    }
}
