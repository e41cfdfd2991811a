//! Tests of the graph crate.
#![allow(clippy::disallowed_methods, reason = "tests copy what they like")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod bindings;
mod build;
mod edit;
mod external;
mod inspect;
mod load;
mod lossless;
mod python;
mod save;
mod support;
mod verify;
