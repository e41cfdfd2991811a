//! OCP MXFP8 (E5M2): 32 elements, a power of two, 8-bit floats E5M2.

use heirloom_mem::DType;
use heirloom_types::StructBuilder;
use heirloom_types::floats::E5M2;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;
use crate::mx;

/// The format: `scale`, then 32 codes of 8 bits, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct OcpMxfp8E5M2;

pub(crate) static FORMAT: Format = Format::block::<OcpMxfp8E5M2, 33, 32>("ocp_mxfp8_e5m2", 1_100_201, None);

impl Block<33, 32> for OcpMxfp8E5M2 {
    fn decode(record: &[u8; 33], values: &mut [f32; 32]) {
        mx::decode(&E5M2, record, values);
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 33]) {
        mx::encode(&E5M2, values, record);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        mx::declare(record, DType::Float8E5M2)
    }

    fn decoder(body: &mut Body) -> Val {
        mx::decoder(body)
    }
}
