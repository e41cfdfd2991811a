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
    /// Anything that the message says whole.
    #[error("{0}")]
    Message(String),
}
