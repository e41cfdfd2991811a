//! OCP MXFP4: 32 elements, a power of two, 4-bit floats E2M1.

use heirloom_mem::DType;
use heirloom_types::StructBuilder;
use heirloom_types::floats::E2M1;

use crate::block::Block;
use crate::body::{Body, Val};
use crate::format::Format;
use crate::mx;

/// The format: `scale`, then 32 codes of 4 bits, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct OcpMxfp4;

pub(crate) static FORMAT: Format = Format::block::<OcpMxfp4, 17, 32>("ocp_mxfp4", 1_100_501, None);

impl Block<17, 32> for OcpMxfp4 {
    fn decode(record: &[u8; 17], values: &mut [f32; 32]) {
        mx::decode(&E2M1, record, values);
    }

    fn encode(values: &[f32; 32], record: &mut [u8; 17]) {
        mx::encode(&E2M1, values, record);
    }

    fn declare(record: StructBuilder) -> StructBuilder {
        mx::declare(record, DType::Float4E2M1)
    }

    fn decoder(body: &mut Body) -> Val {
        mx::decoder(body)
    }
}
