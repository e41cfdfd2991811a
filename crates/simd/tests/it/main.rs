//! Every level of this processor against scalar definitions.
#![allow(clippy::disallowed_methods, clippy::needless_range_loop)]

mod codes;
mod dots;
mod isa;
mod lanes;
mod panels;
mod quantize;
mod random;
mod records;
