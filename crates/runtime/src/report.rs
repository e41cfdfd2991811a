//! What a state holds and what its calls did with memory.

use heirloom_mem::{Counts, Storage, Tensor};
use heirloom_types::Value;

/// Figures of a state or a session; see [`crate::State::report`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls that succeeded.
    pub calls: u64,
    /// Copies, appends, allocations and reuses of all calls so far, failed ones too.
    pub counts: Counts,
    /// Bytes that the retained values hold. Values that share memory count each.
    pub retained_bytes: u64,
    /// Bytes of the buffers behind the retained values, reserved capacity of caches included.
    pub reserved_bytes: u64,
    /// Bytes of working memory that the session keeps between calls, shared by all its states.
    pub scratch_bytes: u64,
}

/// Bytes that `value` holds, and bytes that are reserved for it.
pub(crate) fn sizes(value: &Value) -> (u64, u64) {
    let sum = |(a, b): (u64, u64), value: &Value| {
        let (used, reserved) = sizes(value);
        (a + used, b + reserved)
    };
    match value {
        Value::Tensor(tensor) => tensor_sizes(tensor),
        Value::Strings(strings) => {
            let bytes = strings.elements.iter().map(|e| e.len() as u64).sum();
            (bytes, bytes)
        }
        Value::Encoded(encoded) => (encoded.payload.len() as u64, encoded.payload.len() as u64),
        Value::Struct(fields) => fields.fields.iter().map(|(_, value)| value).fold((0, 0), sum),
        Value::Sequence(values) => values.iter().fold((0, 0), sum),
        Value::Map(entries) => entries.iter().map(|(_, value)| value).fold((0, 0), sum),
        Value::Optional(value) => value.as_deref().map_or((0, 0), sizes),
        _ => (0, 0),
    }
}

fn tensor_sizes(tensor: &Tensor) -> (u64, u64) {
    let used = tensor.byte_len() as u64;
    match tensor.storage() {
        Storage::Append { view, .. } => (used, view.reserved_bytes() as u64),
        Storage::Dense(bytes) | Storage::Strided { bytes, .. } => (used, bytes.len() as u64),
    }
}
