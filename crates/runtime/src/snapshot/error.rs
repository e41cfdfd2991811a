//! Why a state cannot be saved or loaded.

use heirloom_mem::MapError;
use heirloom_types::Faults;

/// Why a state cannot be saved to a file or loaded from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file cannot be written.
    #[error("it cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// A leaf cannot be stored.
    #[error("value `{leaf}` cannot be stored: {reason}")]
    Unfit {
        /// The value, with the path into it.
        leaf: String,
        /// Why not.
        reason: String,
    },
    /// The file cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file is none that `State::save` wrote.
    #[error("it is no saved state: {reason}")]
    NoState {
        /// What is missing.
        reason: String,
    },
    /// The file was cut, damaged or changed.
    #[error("it is damaged: its checksum does not match its contents; save the state anew")]
    Checksum,
    /// The file was written by a newer version.
    #[error("it is a saved state of version {found}; this program reads version {known}")]
    Version {
        /// The file's version.
        found: u64,
        /// The version that is read here.
        known: u64,
    },
    /// The state belongs to another model.
    #[error(
        "it belongs to another model: sha256 {expected} of the `.onnx` file, where this one has {actual}"
    )]
    Model {
        /// The digest in the file.
        expected: String,
        /// The session's model's.
        actual: String,
    },
    /// A struct type is declared in another way than in the model.
    #[error("it declares struct type {type_id} in another way than the model does")]
    Declaration {
        /// The type's identity.
        type_id: u64,
    },
    /// Declarations or encoded values break their rules.
    #[error(transparent)]
    Types(#[from] Faults),
    /// The contents contradict themselves.
    #[error("it is malformed: {0}")]
    Malformed(String),
}
