//! Rewriting models.
mod bind;
mod lower;
mod passes;
mod support;
