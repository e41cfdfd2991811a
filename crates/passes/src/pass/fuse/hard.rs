//! `x * clip(x + 3, 0, 6) / 6`, and its factor `clip(x + 3, 0, 6) / 6`.

use heirloom_graph::{NodeId, ValueId};

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::{fused, near, only, output, plus, product};
use crate::message::{float, node};

/// The version that has HardSwish.
const SINCE: i64 = 14;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    // The longer pattern first: the other one is a part of it.
    if cx.can(view, SINCE) {
        for (id, _) in view.graph.ordered() {
            let Some(all) = product(view, id).filter(|it| it.values.len() == 2) else { continue };
            let found = all.values.iter().find_map(|x| {
                let gate = all.other(*x)?;
                let (nodes, factor) = clipped(view, *x, gate).or_else(|| hard_sigmoid(view, *x, gate))?;
                (near(all.number, factor) && all.keeps_shape(view, *x)).then_some((*x, nodes))
            });
            let (Some((x, nodes)), Some(out)) = (found, output(view, id)) else { continue };
            let swish = node("HardSwish", &view.graph.node(id).name, &[view.name(x)], &[out], Vec::new());
            fused(&mut edits, id, &[all.nodes, nodes].concat(), vec![swish], SINCE);
        }
    }
    for (id, _) in view.graph.ordered() {
        let Some(all) = product(view, id).filter(|it| near(it.number, 1.0 / 6.0)) else { continue };
        let ([gate], Some(out)) = (&all.values[..], output(view, id)) else { continue };
        let Some((x, _)) = gate_of(view, *gate) else { continue };
        let Some((nodes, _)) = clipped(view, x, *gate).filter(|_| all.keeps_shape(view, x)) else { continue };
        let attributes = vec![float("alpha", 1.0 / 6.0), float("beta", 0.5)];
        let sigmoid = node("HardSigmoid", &view.graph.node(id).name, &[view.name(x)], &[out], attributes);
        fused(&mut edits, id, &[all.nodes, nodes].concat(), vec![sigmoid], 6);
    }
    edits
}

/// What is added to 3 within `clip(x + 3, 0, 6)`, and the nodes.
fn gate_of(view: &View<'_>, value: ValueId) -> Option<(ValueId, Vec<NodeId>)> {
    let clip = view.inner_by(value, "Clip")?;
    let bound = |at: usize, name: &str| match clip.attributes.opt_float(name) {
        Ok(Some(bound)) => Some(f64::from(bound)),
        _ => Some(view.number(clip.inputs.get(at).copied().flatten()?)?.0),
    };
    let sum = clip.inputs.first().copied().flatten()?;
    let (x, three, add) = plus(view, sum)?;
    let fits = three == 3.0 && bound(1, "min") == Some(0.0) && bound(2, "max") == Some(6.0);
    fits.then(|| Some((x, vec![view.graph.producer(value)?, add])))?
}

fn clipped(view: &View<'_>, x: ValueId, value: ValueId) -> Option<(Vec<NodeId>, f64)> {
    let (inside, nodes) = gate_of(view, value)?;
    (inside == x).then_some((nodes, 1.0 / 6.0))
}

fn hard_sigmoid(view: &View<'_>, x: ValueId, value: ValueId) -> Option<(Vec<NodeId>, f64)> {
    let gate = view.inner_by(value, "HardSigmoid")?;
    let attribute = |name, default| gate.attributes.float_or(name, default).map_or(f64::NAN, f64::from);
    let fits = only(gate)? == x && near(attribute("alpha", 0.2), 1.0 / 6.0) && attribute("beta", 0.5) == 0.5;
    fits.then(|| Some((vec![view.graph.producer(value)?], 1.0)))?
}
