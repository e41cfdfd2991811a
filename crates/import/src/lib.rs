//! Importers: files of other formats as models that keep their weights where they are.
#![forbid(unsafe_code)]
#![deny(clippy::as_conversions)]

mod error;
pub mod gguf;

pub use error::ImportError;
