//! `x / sqrt(mean(x^2) + epsilon)`: what both normalizations are written with.

use heirloom_graph::{Node, NodeId, ValueId};

use super::super::view::{View, is_standard};
use super::{is_flat, only, plus};

/// A value divided by the root of the mean of its squares.
pub(super) struct Normalized {
    pub(super) x: ValueId,
    /// The axes that are normalized over, as the node says them.
    pub(super) axes: Vec<i64>,
    pub(super) epsilon: f64,
    /// The nodes, without the last one.
    pub(super) nodes: Vec<NodeId>,
}

/// The pattern that ends in a node.
pub(super) fn normalized(view: &View<'_>, id: NodeId) -> Option<Normalized> {
    let node = view.graph.node(id);
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    if is_standard(node, "Div") {
        let (sum, nodes) = root(view, b)?;
        return mean_of_squares(view, a, sum, nodes);
    }
    if !is_standard(node, "Mul") {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, factor)| {
        let (sum, nodes) = inverse_root(view, factor)?;
        mean_of_squares(view, x, sum, nodes)
    })
}

fn root(view: &View<'_>, value: ValueId) -> Option<(ValueId, Vec<NodeId>)> {
    let id = view.graph.producer(value)?;
    if let Some(root) = view.inner_by(value, "Sqrt") {
        return Some((only(root)?, vec![id]));
    }
    Some((powered(view, value, 0.5)?, vec![id]))
}

fn inverse_root(view: &View<'_>, value: ValueId) -> Option<(ValueId, Vec<NodeId>)> {
    let id = view.graph.producer(value)?;
    if let Some(base) = powered(view, value, -0.5) {
        return Some((base, vec![id]));
    }
    let inside = match view.inner_by(value, "Reciprocal") {
        Some(reciprocal) => only(reciprocal)?,
        None => match view.inner_by(value, "Div")?.inputs[..] {
            [Some(one), Some(inside)] if view.number(one) == Some((1.0, 0)) => inside,
            _ => return None,
        },
    };
    let (sum, mut nodes) = root(view, inside)?;
    nodes.push(id);
    Some((sum, nodes))
}

/// What is raised to a power by a node whose result nothing else sees.
fn powered(view: &View<'_>, value: ValueId, by: f64) -> Option<ValueId> {
    let power = view.inner_by(value, "Pow")?;
    let [Some(base), Some(exponent)] = power.inputs[..] else { return None };
    let (exponent, rank) = view.number(exponent)?;
    (exponent == by && is_flat(view, rank, base)).then_some(base)
}

fn mean_of_squares(view: &View<'_>, x: ValueId, sum: ValueId, mut nodes: Vec<NodeId>) -> Option<Normalized> {
    let (mean, epsilon, add) = plus(view, sum)?;
    let (squares, axes) = mean_over(view, view.inner_by(mean, "ReduceMean")?)?;
    let base = powered(view, squares, 2.0).or_else(|| {
        let product = view.inner_by(squares, "Mul")?;
        match product.inputs[..] {
            [Some(a), Some(b)] if a == b => Some(a),
            _ => None,
        }
    });
    if base != Some(x) {
        return None;
    }
    nodes.extend([add, view.graph.producer(mean)?, view.graph.producer(squares)?]);
    Some(Normalized { x, axes, epsilon, nodes })
}

/// What `ReduceMean` takes the mean of, and the axes, if they stay with extent 1.
pub(super) fn mean_over(view: &View<'_>, node: &Node) -> Option<(ValueId, Vec<i64>)> {
    if node.attributes.int_or("keepdims", 1) != Ok(1) {
        return None;
    }
    let x = node.inputs.first().copied().flatten()?;
    let axes = match node.inputs.get(1).copied().flatten() {
        Some(axes) => view.ints(axes)?,
        None => node.attributes.opt_ints("axes").ok()?.map(Vec::from)?,
    };
    Some((x, axes))
}

/// How many of the last axes `axes` are, if they are these.
pub(super) fn trailing(view: &View<'_>, x: ValueId, axes: &[i64]) -> Option<usize> {
    let Some(rank) = view.rank(x).and_then(|rank| i64::try_from(rank).ok()) else {
        return (axes == [-1]).then_some(1);
    };
    let mut axes: Vec<i64> = axes.iter().map(|axis| if *axis < 0 { axis + rank } else { *axis }).collect();
    axes.sort_unstable();
    let count = axes.len();
    let last = (rank - i64::try_from(count).ok()?)..rank;
    (count > 0 && axes.into_iter().eq(last)).then_some(count)
}

/// The only reader of a value that nothing else sees, if it is `op`, and its other input.
pub(super) fn then(view: &View<'_>, value: ValueId, op: &str) -> Option<(NodeId, ValueId)> {
    if !view.is_inner(value) {
        return None;
    }
    let &[id] = view.readers(value) else { return None };
    let node = view.graph.node(id);
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    is_standard(node, op).then_some((id, if a == value { b } else { a }))
}

/// Whether a value has the extents of the last axes of `x`: those that are normalized.
pub(super) fn fits(view: &View<'_>, x: ValueId, count: usize, value: ValueId) -> bool {
    let (Some(dims), Some(of_x)) = (view.dims(value), view.dims(x)) else { return false };
    let known = |dim: &heirloom_infer::Dim| dim.as_ref().is_some_and(heirloom_infer::Expr::is_closed);
    dims.len() == count && dims.iter().all(known) && of_x.ends_with(dims)
}
