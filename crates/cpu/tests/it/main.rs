//! Tests of the crate's public interface.

mod cancel;
mod codes;
mod exact;
mod fast;
mod guard;
mod n_bits;
mod products;
mod team;
