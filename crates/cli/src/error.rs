//! What can go wrong in a command.

use std::path::PathBuf;

/// A command's error: what failed, on which file, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// A file could not be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A model could not be fetched.
    #[error(transparent)]
    Fetch(#[from] crate::fetch::FetchError),
    /// A language model could not be opened or run.
    #[error(transparent)]
    Llm(#[from] heirloom::llm::LlmError),
    /// A model file is wrong.
    #[error(transparent)]
    Model(#[from] heirloom::graph::Error),
    /// A file could not be imported.
    #[error(transparent)]
    Import(#[from] heirloom::import::ImportError),
    /// A model could not be quantized or dequantized.
    #[error(transparent)]
    Quantize(#[from] heirloom::quantize::QuantizeError),
    /// A state could not be made or changed.
    #[error(transparent)]
    State(#[from] heirloom::StateError),
    /// Anything that the message says whole.
    #[error("{0}")]
    Message(String),
}
