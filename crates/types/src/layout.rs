//! The byte layout of a struct type's records.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{StructType, TypeError};

/// A struct type that can be a payload's layout: its declaration resolved and its record size known.
#[derive(Clone, Debug)]
pub struct StructLayout {
    /// The identity in the model's catalogue; absent for inline declarations.
    pub type_id: Option<NonZeroU64>,
    /// The declared name, for messages.
    pub name: String,
    /// Bytes of one record; at least 1.
    pub record_bytes: usize,
    /// The resolved declaration.
    pub declaration: Arc<StructType>,
}

impl StructLayout {
    /// The layout of records of `declaration`.
    ///
    /// # Errors
    /// When the type cannot be a payload's layout: see [`StructType::record_bytes`].
    pub fn new(declaration: Arc<StructType>) -> Result<StructLayout, TypeError> {
        Ok(StructLayout {
            type_id: declaration.type_id(),
            name: declaration.name().into(),
            record_bytes: declaration.record_bytes()?,
            declaration,
        })
    }
}
