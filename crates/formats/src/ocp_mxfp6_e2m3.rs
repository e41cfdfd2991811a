//! OCP MXFP6 (E2M3): 32 elements, a power of two, 6-bit floats E2M3.

use heirloom_mem::DType;
use heirloom_types::StructBuilder;
use heirloom_types::floats::E2M3;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;
use crate::mx;

/// The format: `scale`, then 32 codes of 6 bits, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct OcpMxfp6E2M3;

pub(crate) static FORMAT: Format = Format::block::<OcpMxfp6E2M3, 25, 32>("ocp_mxfp6_e2m3", 1_100_301, None);

impl Block<25, 32> for OcpMxfp6E2M3 {
    fn decode(record: &[u8; 25], values: &mut [f32; 32]) {
        mx::decode(&E2M3, record, values);
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 25]) {
        mx::encode(&E2M3, values, record);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        mx::declare(record, DType::Float6E2M3)
    }

    fn decoder(body: &mut Body) -> Val {
        // FLOAT6 came with operator set 28.
        body.require_opset(28);
        mx::decoder(body)
    }
}
