//! Nodes and constants that no output depends on.

use rustc_hash::FxHashSet;

use super::PassCx;
use super::edits::{Edits, View};

pub(super) fn run(_cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let graph = view.graph;
    let mut alive: FxHashSet<_> = view.named.iter().copied().collect();
    let mut edits = Edits::default();
    let order: Vec<_> = graph.ordered().collect();
    for (id, node) in order.into_iter().rev() {
        if node.outputs.iter().flatten().any(|value| alive.contains(value)) {
            alive.extend(node.inputs.iter().flatten().copied().chain(node.captures()));
        } else {
            edits.remove_node(id);
        }
    }
    for (value, _) in graph.initializers() {
        if graph.is_constant(value) && !alive.contains(&value) {
            edits.remove_constant(graph.value_name(value));
        }
    }
    edits
}
