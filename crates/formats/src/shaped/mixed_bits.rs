//! Blocks of different widths: a record is a pattern of blocks, each with codes of its own width and a FLOAT16 scale;
//! `scale * (code - 2^(width - 1))`. So sensitive parts of a tensor can have more bits than others.

use std::sync::Arc;

use heirloom_mem::DType::Float16;
use heirloom_types::{Codec, CodecError, StructBuilder, StructType, bits};

use super::{Family, Shaped, confirm};
use crate::body::{Body, Val};
use crate::error::FormatError;
use crate::fit::{inverse, nearest, symmetric};
use crate::half_floats::{f16_at, put_f16};
use crate::shape_of::packed;

/// The format for one pattern of widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedBits {
    block: usize,
    widths: Vec<u32>,
}

pub(super) static FAMILY: Family = Family {
    name: "mixed_bits",
    recognize,
    examples: || {
        let patterns: [(usize, &[u32]); 3] = [(32, &[8, 4, 4, 2]), (8, &[3]), (16, &[2, 3, 4, 5, 6, 7, 8])];
        let example = |(block, widths)| Arc::new(MixedBits::new(block, widths).expect("2 to 8 bits")) as _;
        patterns.into_iter().map(example).collect()
    },
};

fn recognize(ty: &StructType) -> Option<Arc<dyn Codec>> {
    let mut widths = Vec::new();
    let (_, first) = packed(ty, &["block0", "codes", "code"])?;
    for i in 0..ty.fields().len() {
        widths.push(packed(ty, &[&field(i), "codes", "code"])?.0);
    }
    confirm(MixedBits::new(*first.first()?, &widths).ok()?, ty)
}

/// The name of block `i`.
fn field(i: usize) -> String {
    format!("block{i}")
}

impl MixedBits {
    /// The format whose records are blocks of `block` elements with codes of `widths` bits.
    ///
    /// # Errors
    /// When `block` is no multiple of 8, or there are no widths, or one is not 2 to 8.
    pub fn new(block: usize, widths: &[u32]) -> Result<MixedBits, FormatError> {
        let refuse = |parameter, value, expected| {
            Err(FormatError::Parameter { format: FAMILY.name, parameter, value, expected })
        };
        if block == 0 || !block.is_multiple_of(8) || block > 1 << 20 {
            return refuse("block", block.to_string(), "a multiple of 8, 8 to 2^20");
        }
        if widths.is_empty() || widths.len() > 1024 || widths.iter().any(|width| !(2..=8).contains(width)) {
            return refuse("widths", format!("{widths:?}"), "1 to 1,024 widths of 2 to 8 bits");
        }
        Ok(MixedBits { block, widths: widths.into() })
    }

    /// Bytes of the codes of a block of `width` bits.
    fn code_bytes(&self, width: u32) -> usize {
        self.block / 8 * width as usize
    }

    fn decode_record(&self, record: &[u8], out: &mut [f32]) {
        let mut codes = vec![0; self.block];
        let mut rest = record;
        for (&width, out) in self.widths.iter().zip(out.chunks_mut(self.block)) {
            let (block, later) = rest.split_at(self.code_bytes(width) + 2);
            let scale = f16_at(block, self.code_bytes(width));
            bits::unpack(block, width, 0, &mut codes);
            for (value, &code) in out.iter_mut().zip(&codes) {
                *value = scale * (i32::from(code) - (1 << (width - 1))) as f32;
            }
            rest = later;
        }
    }

    fn encode_record(&self, values: &[f32], record: &mut [u8]) {
        let mut rest = record;
        for (&width, values) in self.widths.iter().zip(values.chunks(self.block)) {
            let (block, later) = rest.split_at_mut(self.code_bytes(width) + 2);
            let half = 1 << (width - 1);
            let scale = put_f16(block, self.code_bytes(width), symmetric(values, -half, half - 1));
            let inverse = inverse(scale);
            let code = |x: &f32| (nearest(x * inverse, -half, half - 1) + half) as u8;
            let codes: Vec<u8> = values.iter().map(code).collect();
            let end = block.len() - 2;
            bits::pack(&codes, width, &mut block[..end]);
            rest = later;
        }
    }
}

impl Codec for MixedBits {
    fn elements(&self) -> usize {
        self.block * self.widths.len()
    }

    fn record_bytes(&self) -> usize {
        self.widths.iter().map(|&width| self.code_bytes(width) + 2).sum()
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.check(records.len(), out.len())?;
        let pairs = records.chunks(self.record_bytes()).zip(out.chunks_mut(self.elements()));
        pairs.for_each(|(record, out)| self.decode_record(record, out));
        Ok(())
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        super::encode(self, values, records, &|values, record| self.encode_record(values, record))
    }
}

impl Shaped for MixedBits {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn declare(&self, record: StructBuilder) -> StructBuilder {
        self.widths.iter().enumerate().fold(record, |record, (i, &width)| {
            let block = StructType::structure("")
                .bits("codes", &[("code", width)], self.block as u64)
                .field("scale", Float16)
                .build()
                .expect("codes of 2 to 8 bits and a scale");
            record.nested(&field(i), &block)
        })
    }

    fn decoder(&self, body: &mut Body) -> Val {
        let blocks: Vec<Val> = self
            .widths
            .iter()
            .enumerate()
            .map(|(i, &width)| {
                let codes = body.float_field(&[&field(i), "codes", "code"]);
                let codes = body.minus(&codes, (1u32 << (width - 1)) as f32);
                let scale = body.float_field(&[&field(i), "scale"]);
                let scale = body.column(&scale);
                body.mul(&scale, &codes)
            })
            .collect();
        body.concat(&blocks.iter().collect::<Vec<_>>(), 1)
    }
}
