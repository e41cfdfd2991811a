//! Builders, fixtures and comparisons for the tests of every crate.
