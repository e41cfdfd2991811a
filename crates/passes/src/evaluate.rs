//! What rewriting needs of kernels, which stand above it.

use std::sync::Arc;

use heirloom_graph::Node;
use heirloom_mem::Tensor;
use heirloom_types::{EncodedValue, Value};

/// Computes constants: implemented by whoever has kernels.
pub trait Evaluate {
    /// The outputs of a node for these inputs; `None` stands for an input that is left out.
    ///
    /// # Errors
    /// When no kernel takes the node, or it fails.
    fn node(&self, node: &Node, opset: i64, inputs: &[Option<Value>]) -> Result<Vec<Value>, String>;

    /// The tensor that an encoded value stands for.
    ///
    /// # Errors
    /// When there is no codec and no decoder, or it fails.
    fn decode(&self, value: &Arc<EncodedValue>) -> Result<Tensor, String>;
}
