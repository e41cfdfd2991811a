//! Tests of the crate's public interface.

mod fast;
mod products;
mod team;
