//! Heirloom runs ONNX models with quantized values and persistent state.
//!
//! This crate is the stable surface: everything that it names, here or under the names of the crates below, is what
//! others should build on.
//!
//! - [`Engine`] holds what sessions share: kernels and threads. [`Engine::open`] makes a [`Session`] of a file.
//! - A [`Session`] runs calls; a [`State`] carries a model's persistent values from call to call.
//! - [`quantize`] makes float initializers encoded ones, and back.
//! - [`llm`] talks to language models: prompts in, tokens out.
#![forbid(unsafe_code)]

mod engine;
mod evaluate;
pub mod llm;
pub mod quantize;
mod weights;

pub use engine::{Engine, EngineOptions, OpenError};
pub use weights::{WeightBytes, weight_bytes};

pub use heirloom_graph::{Model, OpenOptions};
pub use heirloom_mem::{Counts, DType, Tensor};
pub use heirloom_runtime::{
    CachePolicy, CallOptions, CancelToken, Decode, DecodeError, DecodedBy, DecoderLimits, Feeds, Outputs,
    Prepack, PreparedStore, Profile, RunError, Session, SessionOptions, SnapshotError, State, StateError,
    StoreOptions,
};
pub use heirloom_types::Value;

pub use heirloom_cpu as cpu;
pub use heirloom_formats as formats;
pub use heirloom_graph as graph;
pub use heirloom_import as import;
pub use heirloom_infer as infer;
pub use heirloom_mem as mem;
pub use heirloom_ops as ops;
pub use heirloom_passes as passes;
pub use heirloom_proto as proto;
pub use heirloom_runtime as runtime;
pub use heirloom_text as text;
pub use heirloom_types as types;
