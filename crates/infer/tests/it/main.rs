//! Types and symbolic shapes.
mod declared;
mod expressions;
mod operators;
mod scopes;
mod structs;
mod support;
