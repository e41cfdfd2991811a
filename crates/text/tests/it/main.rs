//! Tokenizers, chat templates and streaming, against what others compute.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

mod chat;
mod differential;
mod json;
mod models;
mod recorded;
mod stream;
mod vocabulary;
