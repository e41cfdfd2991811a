//! Tests of heirloom-mem.
#![allow(missing_docs)]
#![allow(clippy::disallowed_methods)]

mod append;
mod bytes;
mod pool;
mod segments;
mod tensor;
