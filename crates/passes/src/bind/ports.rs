//! Where nodes take and give state: the initial and last states of recurrent layers, the caches of attention, and joins of
//! what was with what is new.

use heirloom_graph::{Graph, Model, NodeId, ValueId};
use rustc_hash::FxHashMap;

/// A place of a node that takes an old and gives a new state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// The node, as messages name it.
    pub(super) node: String,
    id: NodeId,
    /// Which of the node's states.
    index: usize,
}

/// Inputs and outputs that are one state, by operator: `(domain, operator, input, output)`.
const STATES: &[(&str, &str, usize, usize)] = &[
    ("", "RNN", 5, 1),
    ("", "GRU", 5, 1),
    ("", "LSTM", 5, 1),
    ("", "LSTM", 6, 2),
    ("com.microsoft", "DynamicQuantizeLSTM", 5, 1),
    ("com.microsoft", "DynamicQuantizeLSTM", 6, 2),
    ("", "Attention", 4, 1),
    ("", "Attention", 5, 2),
    ("com.microsoft", "GroupQueryAttention", 3, 1),
    ("com.microsoft", "GroupQueryAttention", 4, 2),
    ("com.microsoft", "MultiHeadAttention", 6, 1),
    ("com.microsoft", "MultiHeadAttention", 7, 2),
    ("", "TensorScatter", 0, 0),
    // What was, then what is new.
    ("", "Concat", 0, 0),
];

/// The index of the state of a cell that is written out in products and sums.
const GATED: usize = usize::MAX;

/// Operators that only move the elements of their first input.
const MOVES: &[&str] = &[
    "Cast",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

pub(super) struct Ports {
    readers: FxHashMap<ValueId, Vec<NodeId>>,
}

fn is(domain: &str, wanted: &str) -> bool {
    domain == wanted || (wanted.is_empty() && domain == "ai.onnx")
}

impl Ports {
    pub(super) fn new(model: &Model) -> Ports {
        let mut readers: FxHashMap<ValueId, Vec<NodeId>> = FxHashMap::default();
        for (id, node) in model.graph().ordered() {
            for input in node.inputs.iter().flatten() {
                readers.entry(*input).or_default().push(id);
            }
        }
        Ports { readers }
    }

    /// The places that take an input's elements as their old state.
    pub(super) fn forward(&self, graph: &Graph, input: ValueId) -> Vec<Port> {
        let mut ports = Vec::new();
        let (mut open, mut seen) = (vec![input], vec![input]);
        while let Some(value) = open.pop() {
            for &id in self.readers.get(&value).into_iter().flatten() {
                let node = graph.node(id);
                for (index, (domain, op, from, _)) in STATES.iter().enumerate() {
                    if is(&node.domain, domain)
                        && node.op_type == *op
                        && node.inputs.get(*from) == Some(&Some(value))
                    {
                        ports.push(Port { node: node.describe(id), id, index });
                    }
                }
                if let Some(sum) = self.gated_sum(graph, id, value) {
                    ports.push(Port { node: graph.node(sum).describe(sum), id: sum, index: GATED });
                }
                let moves = is(&node.domain, "") && MOVES.contains(&&*node.op_type);
                if moves && node.inputs.first() == Some(&Some(value)) {
                    for output in node.outputs.iter().flatten() {
                        if !seen.contains(output) {
                            seen.push(*output);
                            open.push(*output);
                        }
                    }
                }
            }
        }
        ports
    }

    /// The places that give an output's elements as their new state.
    pub(super) fn backward(&self, graph: &Graph, output: ValueId) -> Vec<Port> {
        let mut ports = Vec::new();
        let (mut open, mut seen) = (vec![output], vec![output]);
        while let Some(value) = open.pop() {
            let Some(id) = graph.producer(value) else { continue };
            let node = graph.node(id);
            for (index, (domain, op, _, to)) in STATES.iter().enumerate() {
                if is(&node.domain, domain)
                    && node.op_type == *op
                    && node.outputs.get(*to) == Some(&Some(value))
                {
                    ports.push(Port { node: node.describe(id), id, index });
                }
            }
            if !is(&node.domain, "") {
                continue;
            }
            if node.op_type == "Add" {
                ports.push(Port { node: node.describe(id), id, index: GATED });
            }
            let moved = match &*node.op_type {
                "Concat" => node.inputs.len(),
                op if MOVES.contains(&op) => 1,
                _ => 0,
            };
            for input in node.inputs.iter().take(moved).flatten() {
                if !seen.contains(input) {
                    seen.push(*input);
                    open.push(*input);
                }
            }
        }
        ports
    }

    /// The sum of a cell that is written out: `forget * old + input * new`, or `z * old + (1 - z) * new`, where `product`
    /// is the first product and `old` its operand that is no gate.
    fn gated_sum(&self, graph: &Graph, product: NodeId, old: ValueId) -> Option<NodeId> {
        let output = gated(graph, product, Some(old))?;
        self.readers.get(&output)?.iter().copied().find(|&sum| {
            let node = graph.node(sum);
            let is_sum = node.op_type == "Add" && is(&node.domain, "");
            is_sum
                && node.inputs.iter().flatten().filter(|&&it| it != output).any(|&other| {
                    graph.producer(other).is_some_and(|other| gated(graph, other, None).is_some())
                })
        })
    }
}

/// The output of a product with a gate; of `other` with a gate, where it is given.
fn gated(graph: &Graph, product: NodeId, other: Option<ValueId>) -> Option<ValueId> {
    let node = graph.node(product);
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    if node.op_type != "Mul" || !is(&node.domain, "") {
        return None;
    }
    let is_gated = match other {
        Some(other) => (a == other && is_gate(graph, b)) || (b == other && is_gate(graph, a)),
        None => is_gate(graph, a) || is_gate(graph, b),
    };
    node.outputs.first().copied().flatten().filter(|_| is_gated)
}

/// Whether a value is a part of a sigmoid, or what that leaves of 1.
fn is_gate(graph: &Graph, mut value: ValueId) -> bool {
    for _ in 0..8 {
        let Some(id) = graph.producer(value) else { return false };
        let node = graph.node(id);
        let next = match &*node.op_type {
            "Sigmoid" | "HardSigmoid" => return is(&node.domain, ""),
            "Sub" => node.inputs.get(1),
            op if MOVES.contains(&op) => node.inputs.first(),
            _ => return false,
        };
        let Some(Some(next)) = next else { return false };
        value = *next;
    }
    false
}
