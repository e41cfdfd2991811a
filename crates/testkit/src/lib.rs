//! Comparisons, folders and models for the tests of every crate.
#![forbid(unsafe_code)]

pub mod compare;
pub mod folder;
pub mod models;
