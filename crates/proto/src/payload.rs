//! Where the payload of a tensor or an encoded value is.

use heirloom_mem::Bytes;

use crate::external::{ExternalError, ExternalLocation, ExternalResolver, PayloadFault};
use crate::tensor_proto::DataLocation;
use crate::{StringStringEntryProto, TensorProto};

/// Where a payload is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// Nowhere: no element, or no record.
    Empty,
    /// In `raw_data`.
    Raw(&'a Bytes),
    /// In the typed lists of a tensor (`float_data`, `int32_data`, …).
    Lists,
    /// In a file.
    External(ExternalLocation),
}

fn payload<'a>(
    raw: Option<&'a Bytes>,
    has_lists: bool,
    entries: &[StringStringEntryProto],
    location: DataLocation,
) -> Result<Payload<'a>, ExternalError> {
    let contradiction = |fault| Err(ExternalError::Contradiction { fault });
    match location {
        DataLocation::EXTERNAL if raw.is_some() || has_lists => contradiction(PayloadFault::Both),
        DataLocation::EXTERNAL => ExternalLocation::parse(entries).map(Payload::External),
        DataLocation::DEFAULT if !entries.is_empty() => {
            let is_both = raw.is_some() || has_lists;
            contradiction(if is_both { PayloadFault::Both } else { PayloadFault::NotDeclared })
        }
        DataLocation::DEFAULT => Ok(match raw {
            Some(raw) => Payload::Raw(raw),
            None if has_lists => Payload::Lists,
            None => Payload::Empty,
        }),
        DataLocation(other) => contradiction(PayloadFault::UnknownLocation(other)),
    }
}

impl TensorProto {
    /// Where the elements are. No file is touched.
    ///
    /// # Errors
    /// When the fields contradict one another or the external entries break the rules.
    pub fn payload(&self) -> Result<Payload<'_>, ExternalError> {
        let has_lists = !(self.float_data().is_empty()
            && self.int32_data().is_empty()
            && self.string_data().is_empty()
            && self.int64_data().is_empty()
            && self.double_data().is_empty()
            && self.uint64_data().is_empty());
        payload(self.raw_data(), has_lists, self.external_data(), self.data_location())
    }

    /// The bytes of the elements where they lie, for a payload that is not in typed lists; `None` for those.
    ///
    /// # Errors
    /// As [`payload`](Self::payload), and those of the resolver.
    pub fn payload_bytes(&self, resolver: &ExternalResolver) -> Result<Option<Bytes>, ExternalError> {
        bytes(self.payload()?, resolver)
    }

    /// Puts the elements into a file: the entries, the location, and no inline data.
    pub fn set_external(&mut self, place: &ExternalLocation) {
        self.clear_raw_data();
        self.float_data_mut().clear();
        self.int32_data_mut().clear();
        self.string_data_mut().clear();
        self.int64_data_mut().clear();
        self.double_data_mut().clear();
        self.uint64_data_mut().clear();
        *self.external_data_mut() = place.to_entries();
        self.set_data_location(DataLocation::EXTERNAL);
    }
}

#[cfg(feature = "extensions")]
impl crate::EncodedValueProto {
    /// Where the records or codes are. No file is touched.
    ///
    /// # Errors
    /// When the fields contradict one another, the external entries break the rules, or their length is missing.
    pub fn payload(&self) -> Result<Payload<'_>, ExternalError> {
        let found = payload(self.raw_data(), false, self.external_data(), self.data_location())?;
        match found {
            Payload::External(ExternalLocation { length: None, .. }) => Err(ExternalError::NoLength),
            found => Ok(found),
        }
    }

    /// The bytes of the records or codes where they lie.
    ///
    /// # Errors
    /// As [`payload`](Self::payload), and those of the resolver.
    pub fn payload_bytes(&self, resolver: &ExternalResolver) -> Result<Bytes, ExternalError> {
        bytes(self.payload()?, resolver).map(Option::unwrap_or_default)
    }

    /// Puts the payload into a file: the entries, the location, and no inline data.
    pub fn set_external(&mut self, place: &ExternalLocation) {
        self.clear_raw_data();
        *self.external_data_mut() = place.to_entries();
        self.set_data_location(DataLocation::EXTERNAL);
    }
}

fn bytes(payload: Payload<'_>, resolver: &ExternalResolver) -> Result<Option<Bytes>, ExternalError> {
    match payload {
        Payload::Empty => Ok(Some(Bytes::empty())),
        Payload::Raw(raw) => Ok(Some(raw.clone())),
        Payload::Lists => Ok(None),
        Payload::External(place) => resolver.resolve(&place).map(Some),
    }
}
