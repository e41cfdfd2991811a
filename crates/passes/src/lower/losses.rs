//! What of a model standard ONNX has no words for.

use std::fmt;

use heirloom_graph::{Graph, Initializer, Model};
use heirloom_types::ValueType;

/// A part of a model that standard ONNX cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its name: a value, a node, or a pair as `input <- output`.
    pub name: String,
    /// What it is.
    pub kind: LossKind,
}

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossKind {
    /// An encoded constant.
    Encoded,
    /// An encoded constant that a feed may override: an operator's output cannot be an input as well.
    Overridable,
    /// A declared struct type that no constant has.
    StructType,
    /// A value of a struct type.
    StructValue,
    /// A persistent binding.
    Binding,
    /// A node of our own operators.
    Operator,
}

impl Loss {
    /// Whether standard operators, or a list beside the graph, say the same.
    pub(super) fn can_be_lowered(&self) -> bool {
        matches!(self.kind, LossKind::Encoded | LossKind::StructType | LossKind::Binding)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            LossKind::Encoded => "the encoded initializer",
            LossKind::Overridable => "the encoded initializer that a feed may override,",
            LossKind::StructType => "the struct type",
            LossKind::StructValue => "the struct-typed value",
            LossKind::Binding => "the persistent binding",
            LossKind::Operator => "the operator of ai.heirloom,",
        };
        write!(f, "{what} `{}`", self.name)
    }
}

/// All that standard ONNX has no words for; empty for a standard model.
pub fn losses(model: &Model) -> Vec<Loss> {
    let mut losses = Vec::new();
    let graph = model.graph();
    for binding in graph.bindings() {
        let name = format!("{} <- {}", graph.value_name(binding.input), graph.value_name(binding.output));
        losses.push(Loss { name, kind: LossKind::Binding });
    }
    of_graph(graph, &mut losses);
    model.functions().iter().for_each(|function| of_graph(function.body(), &mut losses));
    for ty in model.catalogue().iter() {
        losses.push(Loss { name: ty.to_string(), kind: LossKind::StructType });
    }
    losses
}

fn of_graph(graph: &Graph, losses: &mut Vec<Loss>) {
    for (value, initializer) in graph.initializers() {
        if matches!(initializer, Initializer::Encoded(_)) {
            let kind = if graph.is_input(value) { LossKind::Overridable } else { LossKind::Encoded };
            losses.push(Loss { name: graph.value_name(value).into(), kind });
        }
    }
    for value in graph.values() {
        let is_constant = graph.initializer(value).is_some();
        if !is_constant && graph.value_type(value).is_some_and(has_struct) {
            losses.push(Loss { name: graph.value_name(value).into(), kind: LossKind::StructValue });
        }
    }
    for (id, node) in graph.ordered() {
        if node.domain == "ai.heirloom" {
            losses.push(Loss { name: node.describe(id), kind: LossKind::Operator });
        }
        node.bodies().for_each(|body| of_graph(body, losses));
    }
}

fn has_struct(ty: &ValueType) -> bool {
    match ty {
        ValueType::Struct(_) | ValueType::AnyStruct => true,
        ValueType::Sequence(inner) | ValueType::Optional(inner) => has_struct(inner),
        ValueType::Map { value, .. } => has_struct(value),
        _ => false,
    }
}
