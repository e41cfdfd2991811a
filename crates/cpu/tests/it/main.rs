//! Tests of the crate's public interface.

mod exact;
mod guard;
