//! Integration tests of the wire layer, through its public interface.
#![allow(clippy::disallowed_methods, reason = "tests make and compare small bytes")]
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

mod external;
mod files;
mod fuzz;
mod hostile;
mod large;
mod lossless;
mod model;
mod numbers;
mod python;
mod wheel;
mod zero_copy;
