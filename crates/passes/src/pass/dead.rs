//! Nodes, constants and functions that no output depends on.

use std::sync::Arc;

use heirloom_graph::Model;
use rustc_hash::FxHashSet;

use super::PassCx;
use super::edits::Edits;
use super::view::{Place, View};

pub(super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
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
    if view.place == Place::default() {
        let called = called(cx.model);
        edits.functions = (0..cx.model.functions().len()).filter(|at| !called.contains(at)).collect();
    }
    edits
}

/// The functions that the main graph calls, and those that they call.
fn called(model: &Model) -> FxHashSet<usize> {
    let mut called = FxHashSet::default();
    let mut graphs = vec![model.graph().clone()];
    while let Some(graph) = graphs.pop() {
        for node in graph.nodes() {
            graphs.extend(node.bodies().cloned());
            let function = model.function(&node.domain, &node.op_type, &node.overload);
            let Some(function) = function else { continue };
            let at = model.functions().iter().position(|it| Arc::ptr_eq(it, function));
            if at.is_some_and(|at| called.insert(at)) {
                graphs.push(function.body().clone());
            }
        }
    }
    called
}
