//! Every payload of a model, wherever it stands.

mod change;
mod read;

pub(crate) use change::payloads_mut;
pub(crate) use read::payloads;

use heirloom_mem::Bytes;
use heirloom_proto::external::ExternalError;
use heirloom_proto::{EncodedValueProto, ExternalLocation, Payload, TensorProto};

/// What holds a payload.
pub(crate) enum Holder<'a> {
    Tensor(&'a TensorProto),
    Encoded(&'a EncodedValueProto),
}

/// What holds a payload, to change.
pub(crate) enum HolderMut<'a> {
    Tensor(&'a mut TensorProto),
    Encoded(&'a mut EncodedValueProto),
}

/// What a payload is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A graph's dense or encoded initializer.
    Initializer,
    /// A part of a sparse tensor, an attribute, a parameter.
    Other,
}

impl Holder<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Holder::Tensor(tensor) => tensor.name(),
            Holder::Encoded(value) => value.name(),
        }
    }

    pub(crate) fn payload(&self) -> Result<Payload<'_>, ExternalError> {
        match self {
            Holder::Tensor(tensor) => tensor.payload(),
            Holder::Encoded(value) => value.payload(),
        }
    }

    /// Bytes of `raw_data`.
    pub(crate) fn inline_bytes(&self) -> u64 {
        match self.payload() {
            Ok(Payload::Raw(bytes)) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            _ => 0,
        }
    }
}

impl HolderMut<'_> {
    pub(crate) fn read(&self) -> Holder<'_> {
        match self {
            HolderMut::Tensor(tensor) => Holder::Tensor(tensor),
            HolderMut::Encoded(value) => Holder::Encoded(value),
        }
    }

    pub(crate) fn set_inline(&mut self, bytes: Bytes) {
        match self {
            HolderMut::Tensor(tensor) => {
                tensor.external_data_mut().clear();
                tensor.clear_data_location();
                tensor.set_raw_data(bytes);
            }
            HolderMut::Encoded(value) => {
                value.external_data_mut().clear();
                value.clear_data_location();
                value.set_raw_data(bytes);
            }
        }
    }

    pub(crate) fn set_external(&mut self, place: &ExternalLocation) {
        match self {
            HolderMut::Tensor(tensor) => tensor.set_external(place),
            HolderMut::Encoded(value) => value.set_external(place),
        }
    }
}
