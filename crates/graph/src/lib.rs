//! Graph IR, builder, verification, persistent bindings and symbolic shapes.
#![forbid(unsafe_code)]

mod node;

pub use node::{AttrError, AttrValue, Attributes, Node, NodeId, ValueId};
