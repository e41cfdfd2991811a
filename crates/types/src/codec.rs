//! Native codecs: between the records of a format and the numbers they stand for.

use heirloom_mem::DType;

/// Converts between the records of one struct type and f32 elements.
///
/// A codec is a pure function of the records: it keeps no state, and equal records give equal elements, to the bit.
/// Record `i` holds elements `i * elements()..(i + 1) * elements()` of the flat logical tensor. A format whose
/// parameters lie apart from its codes has one record for the whole tensor; it overrides
/// [`decode_range`](Codec::decode_range).
pub trait Codec: Send + Sync + std::fmt::Debug {
    /// Elements that one record stands for; at least 1.
    fn elements(&self) -> usize;

    /// Bytes of one record; at least 1.
    fn record_bytes(&self) -> usize;

    /// Decodes whole records: `out` takes `elements()` values for each record.
    ///
    /// # Errors
    /// When `records` is no whole number of records or `out` has another length ([`Codec::check`] says so), or the
    /// bytes stand for nothing.
    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError>;

    /// Encodes whole records, the decoder's mirror: the nearest records that the format has.
    ///
    /// # Errors
    /// When the lengths do not fit, a value cannot be represented, or the format has no encoder.
    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        let _ = (values, records);
        Err(CodecError::NoEncoder)
    }

    /// Decodes the `out.len()` elements from element `first` on; they may begin and end within a record.
    ///
    /// # Errors
    /// When the elements lie outside the records, or as [`decode`](Codec::decode).
    fn decode_range(&self, records: &[u8], first: usize, out: &mut [f32]) -> Result<(), CodecError> {
        let (elements, bytes) = (self.elements(), self.record_bytes());
        let available = (records.len() / bytes).saturating_mul(elements);
        let end = first.checked_add(out.len()).filter(|&end| end <= available);
        let Some(end) = end else {
            return Err(CodecError::Range { first, count: out.len(), available });
        };
        let (mut at, mut out) = (first, out);
        let mut scratch = Vec::new();
        while at < end {
            let (record, skip) = (at / elements, at % elements);
            let whole = (end - at) / elements;
            let rest = std::mem::take(&mut out);
            let (now, later) = if skip == 0 && whole > 0 {
                let (now, later) = rest.split_at_mut(whole * elements);
                self.decode(&records[record * bytes..(record + whole) * bytes], now)?;
                (now.len(), later)
            } else {
                scratch.resize(elements, 0.0);
                self.decode(&records[record * bytes..(record + 1) * bytes], &mut scratch)?;
                let count = (elements - skip).min(end - at);
                let (now, later) = rest.split_at_mut(count);
                now.iter_mut().zip(&scratch[skip..]).for_each(|(to, from)| *to = *from);
                (count, later)
            };
            at += now;
            out = later;
        }
        Ok(())
    }

    /// The number of records in `bytes` bytes, if they stand for `values` elements.
    ///
    /// # Errors
    /// When the bytes are no whole number of records, or that many records have another number of elements.
    fn check(&self, bytes: usize, values: usize) -> Result<usize, CodecError> {
        let record_bytes = self.record_bytes();
        if !bytes.is_multiple_of(record_bytes) {
            return Err(CodecError::PartialRecord { bytes, record_bytes });
        }
        let count = bytes / record_bytes;
        match count.checked_mul(self.elements()) {
            Some(expected) if expected == values => Ok(count),
            expected => {
                Err(CodecError::Elements { expected: expected.unwrap_or(usize::MAX), actual: values })
            }
        }
    }
}

/// Why records could not be decoded or encoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end within a record.
    #[error("{bytes} bytes are no whole number of records of {record_bytes} bytes")]
    PartialRecord {
        /// Bytes given.
        bytes: usize,
        /// Bytes of a record.
        record_bytes: usize,
    },
    /// The records stand for another number of elements.
    #[error("the records stand for {expected} elements, not {actual}")]
    Elements {
        /// Elements of the records.
        expected: usize,
        /// Elements asked for.
        actual: usize,
    },
    /// Elements beyond the records were asked for.
    #[error("elements {first}..{} lie outside the {available} that the records stand for", first.saturating_add(*count))]
    Range {
        /// The first element asked for.
        first: usize,
        /// How many were asked for.
        count: usize,
        /// How many there are.
        available: usize,
    },
    /// The bytes are too few or too many.
    #[error("{expected} bytes are needed, not {actual}")]
    PayloadLength {
        /// Bytes needed.
        expected: u64,
        /// Bytes given.
        actual: u64,
    },
    /// The value stands for no tensor.
    #[error("the value has no logical type: read its records by field")]
    NoLogicalType,
    /// The records have no codec here.
    #[error("no codec is registered for {ty}")]
    NoCodec {
        /// The struct type.
        ty: String,
    },
    /// The decoded tensor exceeds the address space.
    #[error("the decoded tensor exceeds the address space")]
    TooLarge,
    /// The format cannot be written.
    #[error("the format has no encoder")]
    NoEncoder,
    /// A value has no representation.
    #[error("element {index} is {value}, which the format cannot represent")]
    Value {
        /// The element.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// The logical type is none that the codec gives.
    #[error("the codec gives {expected}, not {actual}")]
    LogicalType {
        /// The types it gives.
        expected: &'static str,
        /// The type asked for.
        actual: DType,
    },
    /// The records hold something that the format does not allow.
    #[error("record {record}: {reason}")]
    Malformed {
        /// The record.
        record: usize,
        /// What is wrong with it.
        reason: String,
    },
}
