//! OCP MXFP8 (E4M3): 32 elements, a power of two, 8-bit floats E4M3.

use heirloom_mem::DType;
use heirloom_types::StructBuilder;
use heirloom_types::floats::E4M3FN;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;
use crate::mx;

/// The format: `scale`, then 32 codes of 8 bits, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct OcpMxfp8E4M3;

pub(crate) static FORMAT: Format = Format::block::<OcpMxfp8E4M3, 33, 32>("ocp_mxfp8_e4m3", 1_100_101, None);

impl Block<33, 32> for OcpMxfp8E4M3 {
    fn decode(record: &[u8; 33], values: &mut [f32; 32]) {
        mx::decode(&E4M3FN, record, values);
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 33]) {
        mx::encode(&E4M3FN, values, record);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        mx::declare(record, DType::Float8E4M3FN)
    }

    fn decoder(body: &mut Body) -> Val {
        mx::decoder(body)
    }
}
