//! Rewriting models: finding their persistent bindings, passes, and lowering to standard ONNX.
#![forbid(unsafe_code)]

pub mod bind;
mod evaluate;
pub mod lower;
mod message;
pub mod pass;

pub use evaluate::Evaluate;
