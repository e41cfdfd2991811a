//! `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

use heirloom_graph::{NodeId, ValueId};
use heirloom_mem::DType;

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::moments::{Normalized, fits, mean_over, normalized, then, trailing};
use super::{fused, output};
use crate::message::{float, int, node};

/// The version that has LayerNormalization.
const SINCE: i64 = 17;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, _) in view.graph.ordered() {
        let Some((x, centered)) = normalized(view, id).and_then(|it| deviation(view, id, it)) else {
            continue;
        };
        let Some(count) = trailing(view, x, &centered.axes) else { continue };
        let out = view.graph.node(id).outputs.first().copied().flatten();
        let Some((scaled, scale)) = out.and_then(|out| then(view, out, "Mul")) else { continue };
        if view.dtype(x) != Some(DType::Float) || !fits(view, x, count, scale) {
            continue;
        }
        let mut nodes = centered.nodes;
        nodes.push(id);
        let (mut root, mut inputs) = (scaled, vec![view.name(x), view.name(scale)]);
        let product = view.graph.node(scaled).outputs.first().copied().flatten();
        if let Some((add, bias)) = product.and_then(|it| then(view, it, "Add"))
            && fits(view, x, count, bias)
        {
            nodes.push(scaled);
            inputs.push(view.name(bias));
            root = add;
        }
        let Some(out) = output(view, root) else { continue };
        let axis = -i64::try_from(count).unwrap_or(1);
        let attributes = vec![int("axis", axis), float("epsilon", centered.epsilon as f32)];
        let by = node("LayerNormalization", &view.graph.node(root).name, &inputs, &[out], attributes);
        fused(&mut edits, root, &nodes, vec![by], SINCE);
    }
    edits
}

/// What a value is the deviation from the mean of, with all nodes, if only the normalization that ends in `last` reads it.
fn deviation(view: &View<'_>, last: NodeId, found: Normalized) -> Option<(ValueId, Normalized)> {
    let difference = view.made_by(found.x, "Sub")?;
    let [Some(x), Some(mean)] = difference.inputs[..] else { return None };
    let (of, axes) = mean_over(view, view.inner_by(mean, "ReduceMean")?)?;
    let inside = |id: &NodeId| *id == last || found.nodes.contains(id);
    let is_seen = view.named.contains(&found.x) || !view.readers(found.x).iter().all(inside);
    if of != x || is_seen || trailing(view, x, &axes)? != trailing(view, found.x, &found.axes)? {
        return None;
    }
    let mut nodes = found.nodes;
    nodes.extend([view.graph.producer(found.x)?, view.graph.producer(mean)?]);
    Some((x, Normalized { x, axes, epsilon: found.epsilon, nodes }))
}
