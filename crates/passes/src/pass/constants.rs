//! What passes ask about constants and nodes.

use heirloom_graph::{Graph, Initializer, Node, ValueId};

/// Operators whose results are not the same each time.
pub(super) fn is_random(node: &Node) -> bool {
    matches!(
        &*node.op_type,
        "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
            | "Multinomial"
            | "Bernoulli"
            | "Dropout"
    )
}

/// The constant that a value is, if no feed may override it.
pub(super) fn constant(graph: &Graph, value: ValueId) -> Option<&Initializer> {
    if graph.is_constant(value) { graph.initializer(value) } else { None }
}
