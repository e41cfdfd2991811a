//! The `heirloom` command as a user runs it.
#![allow(missing_docs)]
#![allow(clippy::disallowed_methods)]

mod fetch;
mod quantize;
mod run;
mod verify;
