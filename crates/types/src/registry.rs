//! Which codec decodes which struct type.

use std::num::NonZeroU64;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{Codec, Difference, StructLayout, StructType, TypeError};

/// Codecs by the identity of the struct type they are for, each with the declaration that it was written for.
#[derive(Clone, Debug, Default)]
pub struct CodecRegistry(FxHashMap<NonZeroU64, Entry>);

#[derive(Clone, Debug)]
struct Entry {
    declaration: Arc<StructType>,
    codec: Arc<dyn Codec>,
}

/// Why there is no codec for a layout, or why one cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The declaration has no identity.
    #[error("{ty} has no identity: give its codec explicitly, or read it by field")]
    Inline {
        /// The type.
        ty: String,
    },
    /// No codec is registered for the identity.
    #[error("no codec is registered for {ty}")]
    Unknown {
        /// The type.
        ty: String,
    },
    /// The model declares something else under the identity.
    #[error("{ty} is declared differently than its codec expects: {difference}")]
    Declaration {
        /// The type.
        ty: String,
        /// The first difference.
        difference: Difference,
    },
    /// The declaration has no byte layout.
    #[error(transparent)]
    Layout(#[from] TypeError),
    /// The codec has other records than the declaration.
    #[error("the codec has records of {codec} bytes and {ty} of {declared}")]
    RecordBytes {
        /// The type.
        ty: String,
        /// Bytes of the codec's records.
        codec: usize,
        /// Bytes of the declaration's records.
        declared: usize,
    },
    /// The identity has a codec for another declaration.
    #[error("{ty} has a codec already, for another declaration: {difference}")]
    Taken {
        /// The type.
        ty: String,
        /// The first difference.
        difference: Difference,
    },
}

impl CodecRegistry {
    /// No codecs.
    pub fn new() -> CodecRegistry {
        CodecRegistry::default()
    }

    /// Registers a codec for the identity of `declaration`; it replaces an earlier one for the same declaration.
    ///
    /// # Errors
    /// When the declaration has no identity or no byte layout, the codec's records have another size, or the
    /// identity has a codec for another declaration.
    pub fn register(
        &mut self,
        declaration: &Arc<StructType>,
        codec: Arc<dyn Codec>,
    ) -> Result<(), RegistryError> {
        let ty = || declaration.to_string();
        let id = declaration.type_id().ok_or_else(|| RegistryError::Inline { ty: ty() })?;
        let declared = declaration.record_bytes()?;
        if codec.record_bytes() != declared {
            return Err(RegistryError::RecordBytes { ty: ty(), codec: codec.record_bytes(), declared });
        }
        if let Some(difference) = self.0.get(&id).and_then(|e| compatible(&e.declaration, declaration)) {
            return Err(RegistryError::Taken { ty: ty(), difference });
        }
        self.0.insert(id, Entry { declaration: declaration.clone(), codec });
        Ok(())
    }

    /// The codec for a layout: registered under its identity, for an equal declaration.
    ///
    /// # Errors
    /// When the layout is inline, nothing is registered, or the model declares something else under the identity.
    pub fn find(&self, layout: &StructLayout) -> Result<&Arc<dyn Codec>, RegistryError> {
        let ty = || layout.declaration.to_string();
        let id = layout.type_id.ok_or_else(|| RegistryError::Inline { ty: ty() })?;
        let entry = self.0.get(&id).ok_or_else(|| RegistryError::Unknown { ty: ty() })?;
        match compatible(&entry.declaration, &layout.declaration) {
            Some(difference) => Err(RegistryError::Declaration { ty: ty(), difference }),
            None => Ok(&entry.codec),
        }
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many codecs are registered.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Where `actual` means something else than `expected`: fields, constants, layout, and the root's decoder and
/// encoder where both declarations bring one. A file may leave out a codec that a program has anyway.
fn compatible(expected: &StructType, actual: &StructType) -> Option<Difference> {
    expected.layout_difference(actual).or_else(|| {
        let other = |a: &Option<_>, b: &Option<_>| a.is_some() && b.is_some() && a != b;
        let what = if other(&expected.decoder, &actual.decoder) {
            "decoder"
        } else if other(&expected.encoder, &actual.encoder) {
            "encoder"
        } else {
            return None;
        };
        let (expected, actual) = (format!("its {what}"), format!("another {what}"));
        Some(Difference { path: String::new(), expected, actual })
    })
}
