//! `softmax(scale q kᵀ) v`, with keys and values that a `Concat` grows.

use heirloom_graph::{NodeId, ValueId};

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::{fused, output, product};
use crate::message::{float, node};

/// The version that has Attention.
const SINCE: i64 = 23;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, node) in view.graph.ordered() {
        if super::is_standard(node, "MatMul")
            && let Some(found) = attention(view, id)
        {
            replace(view, &mut edits, id, found);
        }
    }
    edits
}

struct Found {
    q: ValueId,
    k: Grown,
    v: Grown,
    scale: f64,
    nodes: Vec<NodeId>,
}

/// Keys or values: those of before, the new ones, and all of them.
struct Grown {
    past: ValueId,
    new: ValueId,
    all: ValueId,
}

fn attention(view: &View<'_>, id: NodeId) -> Option<Found> {
    let [Some(weights), Some(v)] = view.graph.node(id).inputs[..] else { return None };
    let softmax = view.inner_by(weights, "Softmax")?;
    let axis = softmax.attributes.int_or("axis", if view.opset() < 13 { 1 } else { -1 }).ok()?;
    let scores = softmax.inputs[0].filter(|_| matches!(axis, -1 | 3))?;
    let mut nodes = vec![view.graph.producer(weights)?];
    let (scores, mut scale) = scaled(view, scores, &mut nodes);
    let product = view.inner_by(scores, "MatMul")?;
    nodes.push(view.graph.producer(scores)?);
    let [Some(q), Some(keys)] = product.inputs[..] else { return None };
    let (q, by) = scaled(view, q, &mut nodes);
    scale *= by;
    let (keys, by) = scaled(view, keys, &mut nodes);
    scale *= by;
    let transpose = view.inner_by(keys, "Transpose")?;
    nodes.push(view.graph.producer(keys)?);
    let k = transpose.inputs[0].filter(|_| transpose.attributes.ints("perm") == Ok(&[0, 1, 3, 2][..]))?;
    let (k, v) = (grown(view, k)?, grown(view, v)?);
    let readers = |value: ValueId, by: NodeId| view.readers(value).iter().all(|it| *it == by);
    // What else reads all keys (their shape, say) may be what the queries wait for.
    let alone = readers(k.all, view.graph.producer(keys)?) && readers(v.all, id);
    let heads = |value: ValueId| {
        let dims = view.dims(value).filter(|dims| dims.len() == 4)?;
        dims[..2].iter().all(Option::is_some).then_some(&dims[..2])
    };
    let same = heads(q).is_some() && heads(q) == heads(k.new) && heads(q) == heads(v.new);
    nodes.extend([view.graph.producer(k.all)?, view.graph.producer(v.all)?]);
    (alone && same).then_some(Found { q, k, v, scale, nodes })
}

/// What a value is a multiple of, and the number, where nothing else sees it.
fn scaled(view: &View<'_>, value: ValueId, nodes: &mut Vec<NodeId>) -> (ValueId, f64) {
    let found = view.graph.producer(value).filter(|_| view.is_inner(value)).and_then(|id| product(view, id));
    match found {
        Some(found) if found.values.len() == 1 && found.keeps_shape(view, found.values[0]) => {
            nodes.extend(found.nodes);
            (found.values[0], found.number)
        }
        _ => (value, 1.0),
    }
}

fn grown(view: &View<'_>, all: ValueId) -> Option<Grown> {
    let concat = view.made_by(all, "Concat")?;
    let &[Some(past), Some(new)] = &concat.inputs[..] else { return None };
    matches!(concat.attributes.int_or("axis", 0), Ok(2 | -2)).then_some(Grown { past, new, all })
}

fn replace(view: &View<'_>, edits: &mut Edits, id: NodeId, found: Found) {
    let Some(out) = output(view, id) else { return };
    let Found { q, k, v, scale, nodes } = found;
    let inputs = [q, k.new, v.new].map(|value| view.name(value));
    let inputs = [&inputs[..], &[""], &[view.name(k.past), view.name(v.past)]].concat();
    let outputs = [out, view.name(k.all), view.name(v.all)];
    let attributes = vec![float("scale", scale as f32)];
    let by = node("Attention", &view.graph.node(id).name, &inputs, &outputs, attributes);
    fused(edits, id, &nodes, vec![by], SINCE);
}
