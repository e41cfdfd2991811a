//! `x / sqrt(mean(x^2) + epsilon) * scale`, in FLOAT or by way of it.

use heirloom_graph::{NodeId, ValueId};
use heirloom_mem::DType;

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::moments::{fits, normalized, then, trailing};
use super::{fused, only, output};
use crate::message::{float, int, node};

/// The version that has RMSNormalization.
const SINCE: i64 = 23;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, _) in view.graph.ordered() {
        let Some(found) = normalized(view, id).filter(|it| view.dtype(it.x) == Some(DType::Float)) else {
            continue;
        };
        if trailing(view, found.x, &found.axes) != Some(1) {
            continue;
        }
        let Some(out) = view.graph.node(id).outputs.first().copied().flatten() else { continue };
        let mut nodes = found.nodes;
        nodes.push(id);
        let (x, out) = around(view, found.x, out, &nodes).map_or((found.x, out), |(x, out, casts)| {
            nodes.extend(casts);
            (x, out)
        });
        let Some((root, scale)) = then(view, out, "Mul") else { continue };
        if !fits(view, x, 1, scale) || view.dtype(scale) != view.dtype(x) {
            continue;
        }
        let Some(out) = output(view, root) else { continue };
        let attributes = vec![int("axis", -1), float("epsilon", found.epsilon as f32)];
        let inputs = [view.name(x), view.name(scale)];
        let by = node("RMSNormalization", &view.graph.node(root).name, &inputs, &[out], attributes);
        fused(&mut edits, root, &nodes, vec![by], SINCE);
    }
    edits
}

/// What was cast to FLOAT before, and cast back behind, with the casts; the operator computes in FLOAT itself.
fn around(
    view: &View<'_>,
    x: ValueId,
    out: ValueId,
    nodes: &[NodeId],
) -> Option<(ValueId, ValueId, Vec<NodeId>)> {
    let before = only(view.made_by(x, "Cast")?)?;
    if view.named.contains(&x) || !view.readers(x).iter().all(|id| nodes.contains(id)) {
        return None;
    }
    let (&[behind], true) = (view.readers(out), view.is_inner(out)) else { return None };
    let cast = view.graph.node(behind).outputs.first().copied().flatten()?;
    let fits = view.made_by(cast, "Cast").is_some()
        && matches!(view.dtype(before), Some(DType::Float16 | DType::BFloat16))
        && view.dtype(cast) == view.dtype(before);
    fits.then(|| Some((before, cast, vec![view.graph.producer(x)?, behind])))?
}
