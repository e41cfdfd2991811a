//! What a format of fixed-size records computes, record by record.

use heirloom_types::StructBuilder;

use crate::body::{Body, Val};

/// A format whose records have `BYTES` bytes and hold `ELEMENTS` consecutive elements, computed in `f32`.
pub trait Block<const BYTES: usize, const ELEMENTS: usize>: 'static {
    /// The elements of one record. Any bytes are a record.
    fn decode(record: &[u8; BYTES], values: &mut [f32; ELEMENTS]);

    /// The record that stands for `values`, which are finite.
    fn encode(values: &[f32; ELEMENTS], record: &mut [u8; BYTES]);

    /// `record`, an empty structure, with the format's fields in the order of a record's bytes.
    fn declare(record: StructBuilder) -> StructBuilder;

    /// The same computation as [`Block::decode`], as nodes: a tensor [records, ELEMENTS] of FLOAT.
    fn decoder(body: &mut Body) -> Val;
}

/// Decodes whole records.
pub(crate) fn decode_records<F: Block<B, E>, const B: usize, const E: usize>(
    records: &[u8],
    values: &mut [f32],
) {
    let (records, _) = records.as_chunks::<B>();
    let (values, _) = values.as_chunks_mut::<E>();
    for (record, values) in records.iter().zip(values) {
        F::decode(record, values);
    }
}

/// Encodes whole records.
///
/// # Errors
/// The record whose values are too large for its scale: it would decode to infinities.
pub(crate) fn encode_records<F: Block<B, E>, const B: usize, const E: usize>(
    values: &[f32],
    records: &mut [u8],
) -> Result<(), usize> {
    let (values, _) = values.as_chunks::<E>();
    let (records, _) = records.as_chunks_mut::<B>();
    let mut decoded = [0.0; E];
    for (i, (values, record)) in values.iter().zip(records).enumerate() {
        F::encode(values, record);
        F::decode(record, &mut decoded);
        if !decoded.iter().all(|v| v.is_finite()) {
            return Err(i);
        }
    }
    Ok(())
}
