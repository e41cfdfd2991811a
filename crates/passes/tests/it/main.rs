//! Rewriting models.
mod bind;
mod support;
