//! NVFP4 as NVIDIA's tools store it: 4-bit floats E2M1, a scale E4M3 for each 16 of them, and one scale for the whole
//! tensor; `tensor_scale * scale * code`, the scales multiplied first, in f32.
//!
//! The value is one record: all codes, then all scales, then the tensor's scale.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::DType::{Float, Float4E2M1, Float8E4M3FN};
use heirloom_types::floats::{E2M1, E4M3FN, Overflow};
use heirloom_types::{Codec, CodecError, StructBuilder, StructType, bits};

use super::{Family, Shaped, confirm, identity};
use crate::body::{Body, Val};
use crate::error::FormatError;
use crate::fit::{extreme, inverse};
use crate::shape_of::leaves;

/// Elements that share a scale.
const BLOCK: usize = 16;

/// The format for a tensor of a given size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvfp4 {
    blocks: usize,
}

pub(super) static FAMILY: Family = Family {
    name: "nvfp4",
    recognize,
    examples: || vec![Arc::new(Nvfp4 { blocks: 1 }), Arc::new(Nvfp4 { blocks: 24 })],
};

fn recognize(ty: &StructType) -> Option<Arc<dyn Codec>> {
    let (_, dims) = leaves(ty, &["scales"])?;
    let [blocks] = dims[..] else { return None };
    confirm(Nvfp4::new(blocks.checked_mul(BLOCK)?).ok()?, ty)
}

impl Nvfp4 {
    /// The format for `elements` elements.
    ///
    /// # Errors
    /// When they are none, or no multiple of 16.
    pub fn new(elements: usize) -> Result<Nvfp4, FormatError> {
        let blocks = elements / BLOCK;
        if blocks == 0 || !elements.is_multiple_of(BLOCK) || elements > 1 << 48 {
            return Err(FormatError::Parameter {
                format: FAMILY.name,
                parameter: "elements",
                value: elements.to_string(),
                expected: "a multiple of 16, 16 to 2^48",
            });
        }
        Ok(Nvfp4 { blocks })
    }

    /// Where in a record the scales and the tensor's scale begin.
    fn offsets(&self) -> (usize, usize) {
        (self.blocks * BLOCK / 2, self.blocks * (BLOCK / 2 + 1))
    }

    fn decode_part(&self, record: &[u8], first: usize, out: &mut [f32]) -> Result<(), String> {
        let (scales, tensor_scale) = self.offsets();
        let tensor_scale = f32::from_le_bytes(*record[tensor_scale..].first_chunk().expect("4 bytes"));
        let mut codes = [0; BLOCK];
        let (mut at, mut out) = (first, out);
        while !out.is_empty() {
            let count = (BLOCK - at % BLOCK).min(out.len());
            let (now, later) = out.split_at_mut(count);
            let scale = tensor_scale * E4M3FN.decode(record[scales + at / BLOCK]);
            bits::unpack(record, 4, at, &mut codes[..count]);
            for (value, code) in now.iter_mut().zip(codes) {
                *value = scale * E2M1.decode(code);
            }
            at += count;
            out = later;
        }
        Ok(())
    }

    /// The tensor's scale brings the largest magnitude to 6 times 448, the largest code times the largest scale.
    fn encode_record(&self, values: &[f32], record: &mut [u8]) {
        let (scales, tensor_scale) = self.offsets();
        let whole = extreme(values).abs() / (6.0 * 448.0);
        record[tensor_scale..].iter_mut().zip(whole.to_le_bytes()).for_each(|(to, from)| *to = from);
        for (i, block) in values.chunks(BLOCK).enumerate() {
            let code = E4M3FN.encode(extreme(block).abs() / 6.0 * inverse(whole), Overflow::Saturate);
            record[scales + i] = code;
            let inverse = inverse(whole * E4M3FN.decode(code));
            let mut codes = [0; BLOCK];
            for (code, x) in codes.iter_mut().zip(block) {
                *code = E2M1.encode(x * inverse, Overflow::Saturate);
            }
            bits::pack(&codes, 4, &mut record[i * BLOCK / 2..(i + 1) * BLOCK / 2]);
        }
    }
}

impl Codec for Nvfp4 {
    fn elements(&self) -> usize {
        self.blocks * BLOCK
    }

    fn record_bytes(&self) -> usize {
        self.offsets().1 + 4
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        super::decode(self, records, out, &|record, first, out| self.decode_part(record, first, out))
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        super::encode(self, values, records, &|values, record| self.encode_record(values, record))
    }

    fn decode_range(&self, records: &[u8], first: usize, out: &mut [f32]) -> Result<(), CodecError> {
        let part = |record: &[u8], first, out: &mut [f32]| self.decode_part(record, first, out);
        super::decode_range(self, records, first, out, &part)
    }
}

impl Shaped for Nvfp4 {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn declare(&self, record: StructBuilder) -> StructBuilder {
        record
            .tensor("codes", Float4E2M1, &[self.blocks * BLOCK])
            .tensor("scales", Float8E4M3FN, &[self.blocks])
            .field("tensor_scale", Float)
    }

    fn decoder(&self, body: &mut Body) -> Val {
        let blocks = self.blocks as i64;
        let tensor_scale = body.field(&["tensor_scale"]);
        let tensor_scale = body.column(&tensor_scale);
        let scales = body.float_field(&["scales"]);
        let scales = body.mul(&tensor_scale, &scales);
        let scales = body.reshape(&scales, &[0, blocks, 1]);
        let codes = body.float_field(&["codes"]);
        let codes = body.reshape(&codes, &[0, blocks, BLOCK as i64]);
        let values = body.mul(&scales, &codes);
        body.reshape(&values, &[0, blocks * BLOCK as i64])
    }

    fn type_id(&self) -> Option<NonZeroU64> {
        identity(1, self.blocks as u64)
    }
}
