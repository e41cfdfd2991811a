//! The byte layout of a struct type's records.

use std::num::NonZeroU64;

/// A struct type that can be a payload's layout: its declaration resolved and its record size known.
#[derive(Clone, Debug)]
pub struct StructLayout {
    /// The identity in the model's catalogue; absent for inline declarations.
    pub type_id: Option<NonZeroU64>,
    /// The declared name, for messages.
    pub name: String,
    /// Bytes of one record.
    pub record_bytes: usize,
}
