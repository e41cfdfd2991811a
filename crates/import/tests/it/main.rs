//! The GGUF reader and the importers.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

mod build;
mod hostile;
mod overlay;
mod reader;
mod real;
mod tiny;
