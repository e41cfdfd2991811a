//! A format: what the table knows of it.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use heirloom_types::{Codec, CodecError, StructBuilder, StructType};

use crate::block::{Block, decode_records, encode_records};
use crate::body::{Body, Val};

/// A format of fixed-size records, each of which holds a fixed number of consecutive elements.
pub struct Format {
    /// The name: lower case, such as `q4_k`.
    pub name: &'static str,
    /// The identity in catalogues. It changes when fields, constants, layout or decoder do; see the crate's page for
    /// the numbers.
    pub type_id: NonZeroU64,
    /// The number of the tensor type in GGUF files, for formats that occur there.
    pub gguf_type: Option<u32>,
    /// Elements that a record holds.
    pub elements: usize,
    /// Bytes of a record.
    pub record_bytes: usize,
    declare: fn(StructBuilder) -> StructBuilder,
    decoder: fn(&mut Body) -> Val,
    decode: fn(&[u8], &mut [f32]),
    encode: fn(&[f32], &mut [u8]) -> Result<(), usize>,
    declaration: OnceLock<Arc<StructType>>,
}

impl Format {
    pub(crate) const fn block<F: Block<B, E>, const B: usize, const E: usize>(
        name: &'static str,
        type_id: u64,
        gguf_type: Option<u32>,
    ) -> Format {
        Format {
            name,
            type_id: NonZeroU64::new(type_id).expect("an identity is not 0"),
            gguf_type,
            elements: E,
            record_bytes: B,
            declare: F::declare,
            decoder: F::decoder,
            decode: decode_records::<F, B, E>,
            encode: encode_records::<F, B, E>,
            declaration: OnceLock::new(),
        }
    }

    /// The declaration, decoder included, as a catalogue holds it.
    pub fn declaration(&self) -> &Arc<StructType> {
        self.declaration.get_or_init(|| {
            let mut body = Body::new();
            let output = (self.decoder)(&mut body);
            (self.declare)(StructType::structure(self.name))
                .type_id(self.type_id.get())
                .decoder(body.finish(self.name, &output))
                .build()
                .expect("the format's declaration is well formed")
        })
    }
}

impl Codec for Format {
    fn elements(&self) -> usize {
        self.elements
    }

    fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.check(records.len(), out.len())?;
        (self.decode)(records, out);
        Ok(())
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        self.check(records.len(), values.len())?;
        check_finite(values)?;
        (self.encode)(values, records).map_err(|record| {
            let first = record * self.elements;
            too_large(values, first, first + self.elements)
        })
    }
}

impl Codec for &'static Format {
    fn elements(&self) -> usize {
        self.elements
    }

    fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        (**self).decode(records, out)
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        (**self).encode(values, records)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.type_id)
    }
}

/// Refuses NaN and infinities, beside which other values would be lost.
pub(crate) fn check_finite(values: &[f32]) -> Result<(), CodecError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(CodecError::Value { index, value: values[index] }),
        None => Ok(()),
    }
}

/// The error for elements `first..last`, whose scale cannot be stored: the largest is what does not fit.
pub(crate) fn too_large(values: &[f32], first: usize, last: usize) -> CodecError {
    let largest = (first..last).max_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    let index = largest.unwrap_or(first);
    CodecError::Value { index, value: values[index] }
}
