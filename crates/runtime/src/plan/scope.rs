//! A graph while it is lowered: what its values are, and how its nodes are to be read.

use std::borrow::Cow;
use std::sync::Arc;

use heirloom_graph::{AttrValue, Attributes, Function, Graph, Model, Node, NodeId, ValueId};
use heirloom_types::ValueType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Label, Operand, Reg};
use crate::InputFacts;

/// Which version of a domain the nodes of a graph mean.
#[derive(Clone, Copy)]
pub(super) enum Opsets<'a> {
    Model(&'a Model),
    Function(&'a Function),
}

impl Opsets<'_> {
    pub(super) fn of(self, domain: &str) -> Option<i64> {
        match self {
            Opsets::Model(model) => model.opset(domain),
            Opsets::Function(function) => function.opset(domain),
        }
    }
}

/// What the nodes of a function's body may refer to.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) function: &'a Function,
    pub(super) attributes: &'a Attributes,
}

/// One graph while it is lowered.
pub(super) struct Scope<'a> {
    pub(super) graph: &'a Graph,
    pub(super) opsets: Opsets<'a>,
    pub(super) call: Option<Call<'a>>,
    /// Names of the calls and bodies around, with `/` behind each.
    path: String,
    values: Vec<Option<Operand>>,
    /// Inputs of a function that its call leaves out.
    absent: FxHashSet<ValueId>,
    /// Values that states retain, with the persistent input that each is for.
    retained: FxHashMap<ValueId, Reg>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        opsets: Opsets<'a>,
        call: Option<Call<'a>>,
        path: String,
    ) -> Scope<'a> {
        let values = vec![None; graph.value_count()];
        let (absent, retained) = Default::default();
        Scope { graph, opsets, call, path, values, absent, retained }
    }

    /// Notes that outputs of this graph become the outputs `outer` of the graph around.
    pub(super) fn retain(&mut self, outer: &Scope<'_>, outputs: &[Option<ValueId>]) {
        for (output, &inner) in outputs.iter().zip(self.graph.outputs()) {
            if let Some(&reg) = output.as_ref().and_then(|output| outer.retained.get(output)) {
                self.retained.insert(inner, reg);
            }
        }
        self.retain_through();
    }

    /// What `Identity` passes to a retained value is retained itself; so is what `Slice` shortens to one, a window.
    fn retain_through(&mut self) {
        if self.retained.is_empty() {
            return;
        }
        for &id in self.graph.order().iter().rev() {
            let node = self.graph.node(id);
            let passes =
                matches!(&*node.op_type, "Identity" | "Slice") && plain_domain(&node.domain).is_empty();
            if passes
                && let (Some(Some(from)), Some(Some(to))) = (node.inputs.first(), node.outputs.first())
                && let Some(&reg) = self.retained.get(to)
            {
                self.retained.insert(*from, reg);
            }
        }
    }

    /// Notes which output becomes which persistent input's next value, in the main graph.
    pub(super) fn retain_bound(&mut self) {
        for binding in self.graph.bindings() {
            if let Some(Operand::Reg(reg)) = self.get(binding.input) {
                self.retained.insert(binding.output, reg);
            }
        }
        self.retain_through();
    }

    /// The output of `node` that is the next value of the persistent input `input`.
    pub(super) fn next(&self, node: &Node, input: Operand) -> Option<usize> {
        let is_next = |output: &Option<ValueId>| {
            let reg = output.and_then(|output| self.retained.get(&output));
            reg.is_some_and(|&reg| input == Operand::Reg(reg))
        };
        node.outputs.iter().position(is_next)
    }

    pub(super) fn get(&self, value: ValueId) -> Option<Operand> {
        self.values[value.0 as usize]
    }

    pub(super) fn set(&mut self, value: ValueId, operand: Operand) {
        self.values[value.0 as usize] = Some(operand);
    }

    /// Notes that a value is left out.
    pub(super) fn leave_out(&mut self, value: ValueId) {
        self.absent.insert(value);
    }

    pub(super) fn is_absent(&self, value: ValueId) -> bool {
        self.absent.contains(&value)
    }

    /// The node as it is to be computed here: with the attributes that its function's call gives it, and without
    /// inputs that the call leaves out.
    pub(super) fn resolved<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        let refers = |(_, value): (&str, &AttrValue)| matches!(value, AttrValue::Reference(_));
        let call = self.call.filter(|_| node.attributes.iter().any(refers));
        let left_out = |input: &Option<ValueId>| input.is_some_and(|value| self.is_absent(value));
        if call.is_none() && (self.absent.is_empty() || !node.inputs.iter().any(left_out)) {
            return Cow::Borrowed(node);
        }
        let mut node = node.clone();
        if let Some(call) = call {
            node.attributes = node.attributes.iter().filter_map(|pair| resolve(call, pair)).collect();
        }
        for input in &mut node.inputs {
            if left_out(input) {
                *input = None;
            }
        }
        Cow::Owned(node)
    }

    /// The version of `domain` that this graph's nodes mean.
    pub(super) fn opset(&self, domain: &str) -> Option<i64> {
        self.opsets.of(domain)
    }

    /// The node's name and operator for messages.
    pub(super) fn label(&self, node: &Node) -> Label {
        let name = if node.name.is_empty() {
            let output = node.outputs.iter().flatten().next();
            output.map_or_else(|| node.op_type.clone(), |&output| self.graph.value_name(output).to_string())
        } else {
            node.name.clone()
        };
        let domain = plain_domain(&node.domain);
        let op = if domain.is_empty() { node.op_type.clone() } else { format!("{domain}.{}", node.op_type) };
        Label { name: format!("{}{name}", self.path).into(), op: op.into() }
    }
}

/// The domain's name, empty for ai.onnx.
pub(super) fn plain_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// An attribute with the value that the call gives it; `None` where that is none.
fn resolve(call: Call<'_>, (name, value): (&str, &AttrValue)) -> Option<(String, AttrValue)> {
    let value = match value {
        AttrValue::Reference(of) => call.attributes.get(of).or_else(|| call.function.defaults().get(of))?,
        value => value,
    };
    Some((name.into(), value.clone()))
}

/// What a declared type says of a value before any call.
pub(super) fn facts(name: &Arc<str>, ty: Option<&ValueType>) -> InputFacts {
    let spec = ty.and_then(ValueType::as_tensor);
    InputFacts {
        name: name.to_string(),
        constant: None,
        dtype: spec.map(|spec| spec.dtype),
        shape: spec.and_then(heirloom_types::TensorSpec::shape),
        next: None,
    }
}

/// Which nodes the graph's outputs need.
pub(super) fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    let mut open: Vec<NodeId> = graph.outputs().iter().filter_map(|&value| graph.producer(value)).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut needed[id.0 as usize], true) {
            continue;
        }
        let node = graph.node(id);
        let read = node.inputs.iter().flatten().copied().chain(node.captures());
        open.extend(read.filter_map(|value| graph.producer(value)));
    }
    needed
}
