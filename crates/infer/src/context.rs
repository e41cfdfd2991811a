//! What is known of all values of a model.

use std::collections::BTreeMap;

use heirloom_graph::{Graph, Model, NodeId, ValueId};
use heirloom_types::ValueType;

use crate::walk::Walk;
use crate::{Conflict, Fact};

/// How to infer.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InferOptions {
    /// Types of main inputs that replace the declared ones: with numbers for symbols, say. Names that are no inputs are
    /// ignored.
    pub inputs: BTreeMap<String, ValueType>,
    /// Leaves the types of values in between and of outputs aside that the model declares.
    pub ignore_declared: bool,
}

impl InferOptions {
    /// The same with another type for a main input.
    #[must_use]
    pub fn input(mut self, name: &str, ty: ValueType) -> InferOptions {
        self.inputs.insert(name.into(), ty);
        self
    }

    /// The same with another `ignore_declared`.
    #[must_use]
    pub fn ignore_declared(mut self, ignore: bool) -> InferOptions {
        self.ignore_declared = ignore;
        self
    }
}

/// What is known of the values of one graph.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub(crate) facts: Vec<Fact>,
    /// The graphs that nodes of this one run: bodies by their attribute, and the body of a called function.
    pub(crate) inner: Vec<(NodeId, String, Scope)>,
}

impl Scope {
    pub(crate) fn keep(&mut self, node: NodeId, attribute: &str, inner: Scope) {
        self.inner.push((node, attribute.into(), inner));
    }

    /// What is known of a value of the graph.
    ///
    /// # Panics
    /// When the value is another graph's.
    pub fn fact(&self, value: ValueId) -> &Fact {
        &self.facts[value.0 as usize]
    }

    /// What is known of the values of a node's body, by the attribute that holds it; the empty name stands for the body of
    /// the function that the node calls.
    pub fn body(&self, node: NodeId, attribute: &str) -> Option<&Scope> {
        self.inner.iter().find(|(id, name, _)| *id == node && name == attribute).map(|(_, _, scope)| scope)
    }

    /// The inferred type in the terms of declarations.
    pub fn value_type(&self, value: ValueId) -> Option<ValueType> {
        self.fact(value).ty.as_ref().map(crate::Type::to_value_type)
    }
}

/// The inferred types of a model.
#[derive(Clone, Debug)]
pub struct ShapesContext {
    main: Scope,
    conflicts: Vec<Conflict>,
    unknown: BTreeMap<(String, String), usize>,
}

impl ShapesContext {
    /// Infers the types of all values of a model. Nothing is executed, and of payloads only those of a few elements are
    /// read.
    pub fn infer(model: &Model, options: &InferOptions) -> ShapesContext {
        let mut walk = Walk::new(model, options);
        let main = walk.main();
        ShapesContext { main, conflicts: walk.conflicts, unknown: walk.unknown }
    }

    /// What is known of the main graph's values.
    pub fn main(&self) -> &Scope {
        &self.main
    }

    /// Where the model contradicts itself.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// Operators without a rule that occur, as domain and name, and how often.
    pub fn unknown_operators(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.unknown.iter().map(|((domain, name), count)| (&**domain, &**name, *count))
    }

    /// Calls `visit` with each graph of the model, the way to it (empty for the main one) and what is known of its values.
    pub fn each<'a>(&'a self, model: &'a Model, visit: &mut dyn FnMut(&str, &'a Graph, &'a Scope)) {
        each(model, "", model.graph(), &self.main, visit);
    }
}

fn each<'a>(
    model: &'a Model,
    place: &str,
    graph: &'a Graph,
    scope: &'a Scope,
    visit: &mut dyn FnMut(&str, &'a Graph, &'a Scope),
) {
    visit(place, graph, scope);
    for (id, attribute, inner) in &scope.inner {
        let node = graph.node(*id);
        let place = format!("{place}{}/{attribute}", node.describe(*id));
        let body = match node.attributes.get(attribute) {
            Some(heirloom_graph::AttrValue::Graph(body)) => Some(body),
            _ => model.function(&node.domain, &node.op_type, &node.overload).map(|function| function.body()),
        };
        if let Some(body) = body {
            each(model, &place, body, inner, visit);
        }
    }
}
