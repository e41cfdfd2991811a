//! Raising the version of the standard operators, so that a fused operator exists: nodes whose operator is said otherwise
//! in the new version are rewritten, all others mean the same. What cannot be said is a bound.

mod adapt;

use heirloom_graph::{Model, NodeId};
use heirloom_infer::ShapesContext;
use heirloom_proto::ModelProto;
use rustc_hash::FxHashMap;

use super::PassCx;
use super::apply;
use super::edits::Edits;
use super::view::{self, Place, View, is_standard};
use adapt::{ADAPTERS, Adapter};

/// The newest version that nodes are raised to: the newest that the table of [`ADAPTERS`] covers.
pub(super) const NEWEST: i64 = 24;

/// The version that ONNX's broadcasting rules are of; older models stay as they are.
const OLDEST: i64 = 7;

/// How far the standard operators of the main graph and of each function can be raised.
pub(super) fn reach(cx: &PassCx<'_>, shapes: &ShapesContext) -> FxHashMap<Option<usize>, i64> {
    let mut reach: FxHashMap<Option<usize>, i64> = FxHashMap::default();
    view::each(cx.model, Some(shapes), &mut |view| {
        let from = view.opset();
        let root = reach.entry(view.place.function).or_insert(NEWEST);
        if !(OLDEST..NEWEST).contains(&from) {
            *root = from;
            return;
        }
        for (id, adapter) in changes(view, from, *root) {
            let mut node = view.nodes[id.0 as usize].clone();
            if !(adapter.say)(cx, view, id, &mut node, &mut Edits::default()) {
                *root = (*root).min(adapter.version - 1);
            }
        }
    });
    reach
}

/// Nodes that are said otherwise in a version above `from` and up to `to`, each with how, in the order of versions.
fn changes<'v>(
    view: &'v View<'_>,
    from: i64,
    to: i64,
) -> impl Iterator<Item = (NodeId, &'static Adapter)> + 'v {
    view.graph.ordered().flat_map(move |(id, node)| {
        let applies = move |it: &&Adapter| {
            (from + 1..=to).contains(&it.version) && it.ops.iter().any(|op| is_standard(node, op))
        };
        ADAPTERS.iter().filter(applies).map(move |it| (id, it))
    })
}

/// The model with the standard operators of some of its roots at these versions; `None` where a node stands in the way.
pub(super) fn lift(
    cx: &PassCx<'_>,
    shapes: &ShapesContext,
    to: &FxHashMap<Option<usize>, i64>,
) -> Option<ModelProto> {
    let mut all: Vec<(Place, Edits)> = Vec::new();
    let mut is_possible = true;
    view::each(cx.model, Some(shapes), &mut |view| {
        let Some(&to) = to.get(&view.place.function) else { return };
        let mut edits = Edits::default();
        let mut changed: FxHashMap<NodeId, heirloom_proto::NodeProto> = FxHashMap::default();
        for (id, adapter) in changes(view, view.opset(), to) {
            let node = changed.entry(id).or_insert_with(|| view.nodes[id.0 as usize].clone());
            is_possible &= (adapter.say)(cx, view, id, node, &mut edits);
        }
        changed.into_iter().for_each(|(id, node)| edits.swap(id, vec![node]));
        if !edits.is_empty() {
            all.push((view.place.clone(), edits));
        }
    });
    if !is_possible {
        return None;
    }
    let mut proto = apply::apply(cx.model, &all);
    to.iter().for_each(|(root, version)| apply::set_opset(&mut proto, *root, *version));
    Some(proto)
}

/// What the model's roots need beyond what they have.
pub(super) fn wanted(model: &Model, all: &[(Place, Edits)]) -> FxHashMap<Option<usize>, i64> {
    let mut wanted: FxHashMap<Option<usize>, i64> = FxHashMap::default();
    for (place, edits) in all {
        let has = match place.function {
            Some(index) => model.functions()[index].opset(""),
            None => model.opset(""),
        };
        if edits.opset > has.unwrap_or(0) {
            let version = wanted.entry(place.function).or_insert(0);
            *version = edits.opset.max(*version);
        }
    }
    wanted
}

/// Whether all nodes of a graph mean the same in two versions.
pub(super) fn same(graph: &heirloom_graph::Graph, from: i64, to: i64) -> bool {
    let said_otherwise = |node: &heirloom_graph::Node| {
        ADAPTERS
            .iter()
            .any(|it| (from + 1..=to).contains(&it.version) && it.ops.iter().any(|op| is_standard(node, op)))
    };
    to <= NEWEST
        && graph
            .nodes()
            .iter()
            .all(|node| !said_otherwise(node) && node.bodies().all(|body| same(body, from, to)))
}
