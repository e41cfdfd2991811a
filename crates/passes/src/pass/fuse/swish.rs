//! `x * sigmoid(alpha x)`.

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::{fused, only, output, product};
use crate::message::{float, node};

/// The version that has Swish.
const SINCE: i64 = 24;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, _) in view.graph.ordered() {
        let Some(all) = product(view, id).filter(|it| it.number == 1.0 && it.nodes.len() == 1) else {
            continue;
        };
        let found = all.values.iter().find_map(|x| {
            let gate = all.other(*x)?;
            let inside = only(view.inner_by(gate, "Sigmoid")?)?;
            let sigmoid = view.graph.producer(gate)?;
            if inside == *x {
                return Some((*x, 1.0, vec![sigmoid]));
            }
            let scaled = product(view, view.graph.producer(inside).filter(|_| view.is_inner(inside))?)?;
            let fits = scaled.values == [*x] && scaled.keeps_shape(view, *x);
            fits.then(|| (*x, scaled.number, [vec![sigmoid], scaled.nodes].concat()))
        });
        let (Some((x, alpha, nodes)), Some(out)) = (found, output(view, id)) else { continue };
        let attributes = if alpha == 1.0 { Vec::new() } else { vec![float("alpha", alpha as f32)] };
        let swish = node("Swish", &view.graph.node(id).name, &[view.name(x)], &[out], attributes);
        fused(&mut edits, id, &nodes, vec![swish], SINCE);
    }
    edits
}
