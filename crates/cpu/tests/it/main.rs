//! Tests of the crate's public interface.

mod products;
mod team;
