//! Nodes that compute the same.

use heirloom_proto::{AttributeProto, NodeProto};
use rustc_hash::FxHashMap;

use super::PassCx;
use super::constants::is_random;
use super::edits::Edits;
use super::view::View;

pub(super) fn run(_cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    let mut seen: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (id, node) in view.graph.ordered() {
        if is_random(node) || node.bodies().next().is_some() || !node.outputs.iter().any(Option::is_some) {
            continue;
        }
        // Readers of an output that keeps its name cannot read another one.
        let message = &view.nodes[id.0 as usize];
        let key = format!("{}:{}:{}:{:?}", node.domain, node.op_type, node.overload, message.input());
        let same = seen.entry(key).or_default();
        let first = same.iter().copied().find(|&at| is_same(&view.nodes[at], message));
        match first {
            Some(first) if node.outputs.iter().flatten().all(|value| !view.named.contains(value)) => {
                let pairs = view.nodes[first].output().iter().zip(message.output().iter());
                pairs.filter(|(_, own)| !own.is_empty()).for_each(|(kept, own)| edits.replace(own, kept));
                edits.remove_node(id);
            }
            _ => same.push(id.0 as usize),
        }
    }
    edits
}

/// Whether both have the same attributes, and the first all outputs of the second.
fn is_same(first: &NodeProto, second: &NodeProto) -> bool {
    let has = |attributes: &[AttributeProto], it: &AttributeProto| attributes.contains(it);
    first.attribute().len() == second.attribute().len()
        && first.attribute().iter().all(|it| has(second.attribute(), it))
        && first.output().len() >= second.output().len()
        && second
            .output()
            .iter()
            .zip(first.output().iter())
            .all(|(own, kept)| own.is_empty() || !kept.is_empty())
}
