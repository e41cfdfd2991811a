//! The crates together, as users meet them.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

mod conformance;
mod decoders;
mod quantize;
mod unknown_type;
mod values;
