//! The crates together, as users meet them.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod conformance;
mod decoders;
mod paged;
mod quantize;
mod round_trips;
mod unknown_type;
mod values;
mod zoo;
