//! `0.5 x (1 + erf(x / sqrt 2))`, and its approximation `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use heirloom_graph::{NodeId, ValueId};

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::{Product, fused, near, only, output, plus, product};
use crate::message::{node, string};

/// The version that has Gelu.
const SINCE: i64 = 20;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, _) in view.graph.ordered() {
        let Some(all) = product(view, id).filter(|it| near(it.number, 0.5) && it.values.len() == 2) else {
            continue;
        };
        let found = all.values.iter().find_map(|x| {
            let sum = all.other(*x)?;
            let (inner, one, add) = plus(view, sum)?;
            let (tail, approximate) = if near(one, 1.0) { tail(view, *x, inner)? } else { return None };
            all.keeps_shape(view, *x).then(|| (*x, [vec![add], tail].concat(), approximate))
        });
        let (Some((x, nodes, approximate)), Some(out)) = (found, output(view, id)) else { continue };
        let attributes = if approximate { vec![string("approximate", "tanh")] } else { Vec::new() };
        let name = &view.graph.node(id).name;
        let gelu = node("Gelu", name, &[view.name(x)], &[out], attributes);
        fused(&mut edits, id, &[all.nodes, nodes].concat(), vec![gelu], SINCE);
    }
    edits
}

/// The nodes from `x` to the error function or the tangent, and whether it is the tangent.
fn tail(view: &View<'_>, x: ValueId, value: ValueId) -> Option<(Vec<NodeId>, bool)> {
    let id = view.graph.producer(value)?;
    if let Some(erf) = view.inner_by(value, "Erf") {
        let inside = factors(view, only(erf)?)?;
        let fits = inside.values == [x] && near(inside.number, FRAC_1_SQRT_2) && inside.keeps_shape(view, x);
        return fits.then(|| ([vec![id], inside.nodes].concat(), false));
    }
    let inside = factors(view, only(view.inner_by(value, "Tanh")?)?)?;
    if !near(inside.number, FRAC_2_PI.sqrt()) || !inside.keeps_shape(view, x) {
        return None;
    }
    let cubic = match inside.values[..] {
        // x + 0.044715 x^3
        [sum] => {
            let add = view.inner_by(sum, "Add")?;
            let [Some(a), Some(b)] = add.inputs[..] else { return None };
            let term = if a == x {
                b
            } else if b == x {
                a
            } else {
                return None;
            };
            let mut nodes = power(view, x, term, 3)?;
            nodes.push(view.graph.producer(sum)?);
            nodes
        }
        // x (1 + 0.044715 x^2)
        [_, _] => {
            let (term, one, add) = plus(view, inside.other(x)?)?;
            let mut nodes = power(view, x, term, 2).filter(|_| near(one, 1.0))?;
            nodes.push(add);
            nodes
        }
        _ => return None,
    };
    Some(([vec![id], inside.nodes, cubic].concat(), true))
}

fn factors(view: &View<'_>, value: ValueId) -> Option<Product> {
    if !view.is_inner(value) {
        return None;
    }
    product(view, view.graph.producer(value)?)
}

/// The nodes of `0.044715 x^exponent`.
fn power(view: &View<'_>, x: ValueId, value: ValueId, exponent: u32) -> Option<Vec<NodeId>> {
    let term = factors(view, value).filter(|it| near(it.number, 0.044_715) && it.keeps_shape(view, x))?;
    let (mut nodes, mut degree) = (term.nodes.clone(), 0);
    for factor in &term.values {
        if *factor == x {
            degree += 1;
            continue;
        }
        let power = view.inner_by(*factor, "Pow")?;
        let ([Some(base), Some(by)], true) = (&power.inputs[..], degree < 3) else { return None };
        let (by, _) = view.number(*by).filter(|(by, rank)| *base == x && by.fract() == 0.0 && *rank == 0)?;
        degree += if (1.0..=3.0).contains(&by) { by as u32 } else { return None };
        nodes.push(view.graph.producer(*factor)?);
    }
    (degree == exponent).then_some(nodes)
}
