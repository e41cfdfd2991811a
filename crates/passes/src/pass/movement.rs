//! Nodes that only move elements or rename extents: merged where they follow each other, constant where their target is
//! known, and gone where they do nothing. A node that does nothing becomes `Identity`, which another pass drops.

use heirloom_graph::{AttrValue, Node, NodeId, ValueId};
use heirloom_infer::{Dim, Elem, Expr};

use super::PassCx;
use super::edits::Edits;
use super::fuse::is_flat;
use super::view::{View, is_standard};
use crate::message::{self, ints};

/// Operators that keep elements in their order.
const VIEWS: &[&str] = &["Reshape", "Squeeze", "Unsqueeze", "Flatten"];

pub(super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    for (id, node) in view.graph.ordered() {
        let (Some(Some(x)), Some(Some(out))) = (node.inputs.first(), node.outputs.first()) else { continue };
        if !matches!(&*node.domain, "" | "ai.onnx") || node.outputs.iter().flatten().count() != 1 {
            continue;
        }
        if let Some(same) = unchanged(view, node, *x, *out) {
            let identity =
                message::node("Identity", &node.name, &[view.name(same)], &[view.name(*out)], Vec::new());
            edits.swap(id, vec![identity]);
        } else if is_standard(node, "Transpose") {
            transposed_twice(view, &mut edits, id, *x, *out);
        } else if is_standard(node, "Reshape") {
            reshaped(cx, view, &mut edits, id, *x);
        }
    }
    edits
}

/// The value that a node gives back as it was.
fn unchanged(view: &View<'_>, node: &Node, x: ValueId, out: ValueId) -> Option<ValueId> {
    if VIEWS.contains(&&*node.op_type) {
        return same_before(view, x, out);
    }
    let number = |at: usize| node.inputs.get(at).copied().flatten().and_then(|it| view.number(it));
    let is_same = match &*node.op_type {
        "Transpose" => permutation(view, node, x)?.into_iter().eq(0..view.rank(x)?),
        "Expand" => equal(view.dims(x)?, view.dims(out)?),
        "Cast" => {
            let to = node.attributes.int("to").ok().and_then(|it| i32::try_from(it).ok());
            Some(view.dtype(x)?.onnx()) == to
        }
        "Concat" => node.inputs.len() == 1,
        "Dropout" => node.inputs.get(2).is_none_or(Option::is_none) && view.opset() >= 7,
        "Mul" => {
            if let Some(scaled) = [(0, 1), (1, 0)].into_iter().find_map(|(value, factor)| {
                let value = node.inputs.get(value).copied().flatten()?;
                let (by, rank) = number(factor)?;
                (by == 1.0 && is_flat(view, rank, value)).then_some(value)
            }) {
                return Some(scaled);
            }
            false
        }
        "Div" => number(1).is_some_and(|(by, rank)| by == 1.0 && is_flat(view, rank, x)),
        _ => false,
    };
    is_same.then_some(x)
}

/// The value behind nodes that keep the order of elements which has the same shape.
fn same_before(view: &View<'_>, x: ValueId, out: ValueId) -> Option<ValueId> {
    let dims = view.dims(out)?;
    let mut value = x;
    loop {
        if view.dims(value).is_some_and(|before| equal(before, dims)) {
            return Some(value);
        }
        let op = VIEWS.iter().find_map(|op| view.made_by(value, op))?;
        value = op.inputs.first().copied().flatten()?;
    }
}

/// Whether two shapes are the same for all inputs.
fn equal(a: &[Dim], b: &[Dim]) -> bool {
    let closed = |dim: &Dim| dim.as_ref().is_some_and(Expr::is_closed);
    a == b && a.iter().all(closed)
}

/// The axes of a `Transpose`.
fn permutation(view: &View<'_>, node: &Node, x: ValueId) -> Option<Vec<usize>> {
    match node.attributes.get("perm") {
        Some(AttrValue::Ints(axes)) => axes.iter().map(|&axis| usize::try_from(axis).ok()).collect(),
        Some(_) => None,
        None => Some((0..view.rank(x)?).rev().collect()),
    }
}

fn transposed_twice(view: &View<'_>, edits: &mut Edits, id: NodeId, x: ValueId, out: ValueId) {
    let merged = || -> Option<(ValueId, Vec<i64>)> {
        let first = view.made_by(x, "Transpose")?;
        let source = first.inputs.first().copied().flatten()?;
        let (inner, outer) = (permutation(view, first, source)?, permutation(view, view.graph.node(id), x)?);
        let axes = outer.iter().map(|&axis| inner.get(axis).map(|&it| it as i64));
        Some((source, axes.collect::<Option<_>>()?))
    };
    if let Some((source, axes)) = merged() {
        let (name, inputs, outputs) = (&view.graph.node(id).name, [view.name(source)], [view.name(out)]);
        edits.swap(id, vec![message::node("Transpose", name, &inputs, &outputs, vec![ints("perm", &axes)])]);
    }
}

/// A reshape whose target is computed from the extents of its input says so in a constant; one behind another reads what
/// that one read.
fn reshaped(cx: &PassCx<'_>, view: &View<'_>, edits: &mut Edits, id: NodeId, x: ValueId) {
    let node = view.graph.node(id);
    let Some(target) = node.inputs.get(1).copied().flatten() else { return };
    if node.attributes.int_or("allowzero", 0) != Ok(0) && view.ints(target).is_none_or(|it| it.contains(&0)) {
        return;
    }
    let mut message = view.nodes[id.0 as usize].clone();
    let mut changed = false;
    let numbers = if view.constant(target).is_some() { view.ints(target) } else { None };
    if let Some(numbers) = &numbers
        && !numbers.contains(&0)
        && let Some(first) = VIEWS.iter().find_map(|op| view.made_by(x, op))
        && let Some(source) = first.inputs.first().copied().flatten()
    {
        message.input_mut().set(0, view.name(source));
        changed = true;
    }
    if numbers.is_none()
        && let Some(numbers) = target_of(view, x, target)
    {
        let name = edits.ints(cx, view, id, "target", &numbers);
        message.input_mut().set(1, &name);
        changed = true;
    }
    if changed {
        edits.swap(id, vec![message]);
    }
}

/// The numbers that stand for a target: an extent that is the input's at its place is 0.
fn target_of(view: &View<'_>, x: ValueId, target: ValueId) -> Option<Vec<i64>> {
    let dims = view.dims(x)?;
    let elems = view.fact(target)?.elems.as_ref()?;
    let number = |(at, elem): (usize, &Option<Elem>)| {
        let Some(Elem::Int(expr)) = elem else { return None };
        match expr.as_number() {
            // In the input's own terms 0 would be copied; a target of 0 elements stays computed.
            Some(0) => None,
            Some(number) => Some(number),
            None => (expr.is_closed() && dims.get(at)?.as_ref() == Some(expr)).then_some(0),
        }
    };
    elems.iter().enumerate().map(number).collect()
}
