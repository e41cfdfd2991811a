//! Operators that exporters write out, recognized. Each replaces the last node of a pattern, whose output keeps its name, and
//! only where nothing else sees the values in between.

pub(super) mod attention;
pub(super) mod gelu;
pub(super) mod hard;
pub(super) mod layer_norm;
mod moments;
pub(super) mod rms_norm;
pub(super) mod rotary;
pub(super) mod swish;

use heirloom_graph::{Node, NodeId, ValueId};
use heirloom_proto::NodeProto;

use super::edits::Edits;
use super::view::View;
pub(super) use super::view::is_standard;

/// A product, quotients by numbers included, as its factors.
#[derive(Debug, Default)]
pub(super) struct Product {
    /// Factors that are no numbers.
    pub(super) values: Vec<ValueId>,
    /// The product of the numbers.
    pub(super) number: f64,
    /// The highest rank of a number.
    rank: usize,
    /// The nodes that multiply.
    pub(super) nodes: Vec<NodeId>,
}

/// How many nodes deep a product is followed.
const DEPTH: usize = 4;

/// The factors of what a node makes, if it is `Mul`, or `Div` by a number.
pub(super) fn product(view: &View<'_>, id: NodeId) -> Option<Product> {
    let mut product = Product { number: 1.0, ..Product::default() };
    multiply(view, id, &mut product, DEPTH).then_some(product)
}

fn multiply(view: &View<'_>, id: NodeId, product: &mut Product, depth: usize) -> bool {
    let node = view.graph.node(id);
    let is_quotient = is_standard(node, "Div");
    let ([Some(a), Some(b)], true) = (&node.inputs[..], is_quotient || is_standard(node, "Mul")) else {
        return false;
    };
    if is_quotient && view.number(*b).is_none() {
        return false;
    }
    product.nodes.push(id);
    for (value, divides) in [(*a, false), (*b, is_quotient)] {
        if let Some((number, rank)) = view.number(value) {
            product.number *= if divides { 1.0 / number } else { number };
            product.rank = product.rank.max(rank);
            continue;
        }
        let inner = view.graph.producer(value).filter(|_| view.is_inner(value) && depth > 0);
        if !inner.is_some_and(|inner| multiply(view, inner, product, depth - 1)) {
            product.values.push(value);
        }
    }
    true
}

impl Product {
    /// The other one of two factors.
    pub(super) fn other(&self, value: ValueId) -> Option<ValueId> {
        match self.values[..] {
            [a, b] if a == value => Some(b),
            [a, b] if b == value => Some(a),
            _ => None,
        }
    }

    /// Whether numbers leave the shape of `value` as it is.
    pub(super) fn keeps_shape(&self, view: &View<'_>, value: ValueId) -> bool {
        is_flat(view, self.rank, value)
    }
}

/// Whether a constant of one element and this rank leaves the shape of `value` as it is.
pub(super) fn is_flat(view: &View<'_>, rank: usize, value: ValueId) -> bool {
    rank == 0 || view.rank(value).is_some_and(|of_value| of_value >= rank)
}

/// Whether a constant is a number but for its rounding.
pub(super) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 5e-4 * b.abs()
}

/// The value and the number that a sum adds, and its node.
pub(super) fn plus(view: &View<'_>, value: ValueId) -> Option<(ValueId, f64, NodeId)> {
    let node = view.inner_by(value, "Add")?;
    let id = view.graph.producer(value)?;
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    let (value, (number, rank)) = match (view.number(a), view.number(b)) {
        (None, Some(number)) => (a, number),
        (Some(number), None) => (b, number),
        _ => return None,
    };
    is_flat(view, rank, value).then_some((value, number, id))
}

/// The two inputs of a node, in either order, with `first` in front.
pub(super) fn pair(node: &Node) -> Option<[(ValueId, ValueId); 2]> {
    match node.inputs[..] {
        [Some(a), Some(b)] => Some([(a, b), (b, a)]),
        _ => None,
    }
}

/// The only input of a node of one input.
pub(super) fn only(node: &Node) -> Option<ValueId> {
    match node.inputs[..] {
        [Some(value)] => Some(value),
        _ => None,
    }
}

/// Puts a node in the place of a pattern, unless another one has taken a part of it.
pub(super) fn fused(edits: &mut Edits, root: NodeId, inner: &[NodeId], by: Vec<NodeProto>, opset: i64) {
    if edits.has(root) || inner.iter().any(|id| edits.has(*id)) {
        return;
    }
    inner.iter().filter(|id| **id != root).for_each(|id| edits.remove_node(*id));
    edits.swap(root, by);
    edits.needs(opset);
}

/// The name of what a node makes, if that is one value.
pub(super) fn output<'a>(view: &View<'a>, id: NodeId) -> Option<&'a str> {
    match view.graph.node(id).outputs[..] {
        [Some(value)] => Some(view.name(value)),
        _ => None,
    }
}
