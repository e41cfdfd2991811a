//! Sessions and states as their callers see them.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

mod append;
mod control;
mod faults;
mod forms;
mod functions;
mod lent;
mod models;
mod prepared;
mod properties;
mod refusals;
mod sessions;
mod snapshots;
mod states;
mod structs;
mod test_kernels;
