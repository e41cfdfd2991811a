//! Formats with a type for each shape or table.
//!
//! Where scales, zero points or a codebook lie apart from the codes, the whole value is one record and the type says
//! the shape. Where a table is a constant, each table has its type. A family makes such types from parameters
//! ([`Shaped::declaration`]) and finds the parameters in a declaration again ([`Family::recognize`]).

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_types::{Codec, CodecError, StructBuilder, StructType};

use crate::body::{Body, Val};
use crate::format::{check_finite, too_large};

/// A format with its parameters.
pub trait Shaped: Codec {
    /// The family's name.
    fn name(&self) -> &'static str;

    /// `record`, an empty structure, with the fields in the order of a record's bytes.
    fn declare(&self, record: StructBuilder) -> StructBuilder;

    /// The same computation as [`Codec::decode`], as nodes: a tensor [records, elements of a record] of FLOAT.
    fn decoder(&self, body: &mut Body) -> Val;

    /// The identity that the parameters make where they are few numbers; `None` where a table belongs to them.
    /// Equal parameters have equal identities, different ones different ones.
    fn type_id(&self) -> Option<NonZeroU64> {
        None
    }

    /// The declaration under the identity `type_id`, or for inline use.
    fn declaration(&self, type_id: Option<NonZeroU64>) -> Arc<StructType> {
        let mut body = Body::new();
        let output = self.decoder(&mut body);
        let record = self.declare(StructType::structure(self.name()));
        let record = record.decoder(body.finish(self.name(), &output));
        let record = match type_id {
            Some(id) => record.type_id(id.get()),
            None => record,
        };
        record.build().expect("checked parameters make a well-formed declaration")
    }
}

/// A kind of [`Shaped`] formats.
pub struct Family {
    /// The name.
    pub name: &'static str,
    /// The codec with the parameters that the declaration shows; `None` for a declaration that this family does not
    /// make.
    pub recognize: fn(&StructType) -> Option<Arc<dyn Codec>>,
    /// Members that show what the parameters do; the conformance tests run over them.
    pub examples: fn() -> Vec<Arc<dyn Shaped>>,
}

macro_rules! families {
    ($($module:ident,)*) => {
        $(pub mod $module;)*

        /// All families.
        pub static FAMILIES: &[&Family] = &[$(&$module::FAMILY,)*];
    };
}

families! {
    codebook,
    k_means,
    mat_mul_n_bits,
    mixed_bits,
    nvfp4,
}

/// `candidate` as a codec, if it declares just what `ty` is.
pub(crate) fn confirm<S: Shaped + 'static>(candidate: S, ty: &StructType) -> Option<Arc<dyn Codec>> {
    candidate.declaration(None).difference(ty).is_none().then(|| Arc::new(candidate) as Arc<dyn Codec>)
}

/// An identity of family `family` (1 to 31, in the five highest bits) from a number below 2^59.
pub(crate) fn identity(family: u64, parameters: u64) -> Option<NonZeroU64> {
    if parameters >> 59 != 0 {
        return None;
    }
    NonZeroU64::new(family << 59 | parameters)
}

/// Decodes the elements of one record from some element on.
type DecodePart<'a> = &'a dyn Fn(&[u8], usize, &mut [f32]) -> Result<(), String>;

/// [`Codec::decode`] by parts of records.
pub(crate) fn decode(
    codec: &dyn Codec,
    records: &[u8],
    out: &mut [f32],
    part: DecodePart<'_>,
) -> Result<(), CodecError> {
    codec.check(records.len(), out.len())?;
    decode_range(codec, records, 0, out, part)
}

/// [`Codec::decode_range`] for records that are large: only what is asked for is decoded.
pub(crate) fn decode_range(
    codec: &dyn Codec,
    records: &[u8],
    first: usize,
    out: &mut [f32],
    part: DecodePart<'_>,
) -> Result<(), CodecError> {
    let (elements, bytes) = (codec.elements(), codec.record_bytes());
    let available = (records.len() / bytes).saturating_mul(elements);
    if first.checked_add(out.len()).is_none_or(|end| end > available) {
        return Err(CodecError::Range { first, count: out.len(), available });
    }
    let (mut at, mut out) = (first, out);
    while !out.is_empty() {
        let (record, skip) = (at / elements, at % elements);
        let count = (elements - skip).min(out.len());
        let (now, later) = out.split_at_mut(count);
        part(&records[record * bytes..(record + 1) * bytes], skip, now)
            .map_err(|reason| CodecError::Malformed { record, reason })?;
        at += count;
        out = later;
    }
    Ok(())
}

/// [`Codec::encode`] record by record.
pub(crate) fn encode(
    codec: &dyn Codec,
    values: &[f32],
    records: &mut [u8],
    record: &dyn Fn(&[f32], &mut [u8]),
) -> Result<(), CodecError> {
    codec.check(records.len(), values.len())?;
    check_finite(values)?;
    let pairs = values.chunks(codec.elements()).zip(records.chunks_mut(codec.record_bytes()));
    pairs.for_each(|(values, bytes)| record(values, bytes));
    let mut decoded = [0.0; 4096];
    for first in (0..values.len()).step_by(decoded.len()) {
        let part = &mut decoded[..(values.len() - first).min(4096)];
        codec.decode_range(records, first, part)?;
        if !part.iter().all(|v| v.is_finite()) {
            return Err(too_large(values, first, first + part.len()));
        }
    }
    Ok(())
}
