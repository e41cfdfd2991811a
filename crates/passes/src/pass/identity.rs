//! Nodes that pass their input on.

use super::PassCx;
use super::edits::Edits;
use super::view::View;

pub(super) fn run(_cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let graph = view.graph;
    let mut edits = Edits::default();
    for (id, node) in graph.ordered() {
        let is_identity = node.op_type == "Identity" && matches!(&*node.domain, "" | "ai.onnx");
        let ([Some(from)], [Some(to)], true) = (&node.inputs[..], &node.outputs[..], is_identity) else {
            continue;
        };
        let (old, new) = (graph.value_name(*from), graph.value_name(*to));
        if edits.touches(old) && view.named.contains(to) {
            continue;
        }
        if !view.named.contains(to) {
            edits.replace(new, old);
        } else if graph.producer(*from).is_some()
            && !view.named.contains(from)
            && !edits.touches(old)
            && !edits.touches(new)
        {
            // The output keeps its name: what makes the value makes it under that.
            edits.rename(old, new);
        } else {
            continue;
        }
        edits.remove_node(id);
    }
    edits
}
