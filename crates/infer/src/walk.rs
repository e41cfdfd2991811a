//! The walk through a model's graphs.

use std::collections::BTreeMap;

use heirloom_graph::{Attributes, Graph, Model, Node, NodeId, ValueId};

use crate::Expr;
use crate::conflict::{Conflict, ConflictKind};
use crate::context::{InferOptions, Scope};
use crate::fact::{Fact, Type};
use crate::merge::with_declared;
use crate::rules::{self, Cx, Stop};

/// Calls of functions and bodies may be nested this deep.
const MOST_DEPTH: usize = 64;

/// Nodes that are looked at: functions that call functions many times would never end.
const MOST_STEPS: usize = 4_000_000;

pub(crate) struct Walk<'m> {
    pub(crate) model: &'m Model,
    options: &'m InferOptions,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) unknown: BTreeMap<(String, String), usize>,
    depth: usize,
    steps: usize,
    /// While bodies are tried out, what they say is not reported.
    pub(crate) quiet: usize,
}

/// What a graph's nodes are read with.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pub(crate) opsets: &'e [(String, i64)],
    /// Within a function: the attributes of the call, and the defaults.
    pub(crate) arguments: Option<&'e Attributes>,
    /// The way to the graph.
    pub(crate) place: &'e str,
}

impl Env<'_> {
    fn opset(&self, domain: &str) -> i64 {
        let canonical = |name: &str| matches!(name, "" | "ai.onnx");
        let same = |name: &str| name == domain || (canonical(name) && canonical(domain));
        self.opsets.iter().find(|(name, _)| same(name)).map_or(1, |(_, version)| *version)
    }
}

impl<'m> Walk<'m> {
    pub(crate) fn new(model: &'m Model, options: &'m InferOptions) -> Walk<'m> {
        Walk { model, options, conflicts: Vec::new(), unknown: BTreeMap::new(), depth: 0, steps: 0, quiet: 0 }
    }

    pub(crate) fn main(&mut self) -> Scope {
        let model = self.model;
        let graph = model.graph();
        let input = |&value: &ValueId| {
            let replaced = self.options.inputs.get(graph.value_name(value));
            let declared = replaced.or_else(|| graph.value_type(value));
            let mut fact =
                declared.map(|ty| Fact::of(named(ty, graph.value_name(value)))).unwrap_or_default();
            // Before version 4 of the representation every initializer was an input, too.
            if model.ir_version() < 4
                && replaced.is_none()
                && let Some(Ok(constant)) = graph.initializer(value).map(|it| it.value())
            {
                fact = Fact::of_value(&constant);
            }
            Some(fact)
        };
        let inputs = graph.inputs().iter().map(input).collect();
        let env = Env { opsets: model.opset_imports(), arguments: None, place: "" };
        self.graph(graph, env, inputs, &|_| Fact::default())
    }

    /// The values of one graph, from what is known of its inputs and of the values around it.
    pub(crate) fn graph(
        &mut self,
        graph: &Graph,
        env: Env<'_>,
        inputs: Vec<Option<Fact>>,
        around: &dyn Fn(ValueId) -> Fact,
    ) -> Scope {
        let mut scope = Scope { facts: vec![Fact::default(); graph.value_count()], inner: Vec::new() };
        if self.depth >= MOST_DEPTH {
            return scope;
        }
        self.depth += 1;
        for (value, initializer) in graph.initializers() {
            if graph.is_constant(value) {
                scope.facts[at(value)] = match initializer.value() {
                    Ok(value) => Fact::of_value(&value),
                    Err(_) => {
                        initializer.value_type().map(|ty| Fact::of(Type::from(&ty))).unwrap_or_default()
                    }
                };
            }
        }
        for (&value, fact) in graph.inputs().iter().zip(inputs) {
            scope.facts[at(value)] = fact.unwrap_or_default();
        }
        for capture in graph.captures() {
            scope.facts[at(capture.inner)] = around(capture.outer);
        }
        for (id, node) in graph.ordered() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                break;
            }
            let outputs = self.node(graph, &mut scope, env, id, node);
            for (value, fact) in node.outputs.iter().zip(outputs) {
                if let Some(value) = *value {
                    scope.facts[at(value)] = self.declared(graph, env, (id, node), value, fact);
                }
            }
        }
        self.depth -= 1;
        scope
    }

    /// What is known of an output, with what the graph declares of it.
    fn declared(
        &mut self,
        graph: &Graph,
        env: Env<'_>,
        node: (NodeId, &Node),
        value: ValueId,
        mut fact: Fact,
    ) -> Fact {
        let declared = graph.value_type(value).filter(|_| !self.options.ignore_declared);
        let Some(declared) = declared.map(Type::from) else { return fact };
        let inferred = fact.ty.take();
        let (ty, clash) = with_declared(inferred.clone(), declared.clone());
        if clash && let Some(inferred) = &inferred {
            self.conflict(
                env,
                node,
                ConflictKind::Declared {
                    value: graph.value_name(value).into(),
                    declared: declared.to_string(),
                    inferred: inferred.to_string(),
                },
            );
        }
        fact.ty = Some(ty);
        fact
    }

    fn conflict(&mut self, env: Env<'_>, (id, node): (NodeId, &Node), kind: ConflictKind) {
        if self.quiet == 0 && self.conflicts.len() < 1000 {
            let graph = env.place.trim_end_matches('/').into();
            let node = node.describe(id);
            self.conflicts.push(Conflict { graph, node, kind });
        }
    }

    fn node(&mut self, graph: &Graph, scope: &mut Scope, env: Env<'_>, id: NodeId, node: &Node) -> Vec<Fact> {
        let domain = if node.domain == "ai.onnx" { "" } else { &*node.domain };
        if let Some(function) = self.model.function(&node.domain, &node.op_type, &node.overload) {
            let function = function.clone();
            return self.call(scope, env, (id, node), &function);
        }
        if domain.is_empty() && matches!(&*node.op_type, "If" | "Loop" | "Scan" | "SequenceMap") {
            return self.control(graph, scope, env, (id, node));
        }
        let Some(rule) = rules::of(domain, &node.op_type) else {
            if self.quiet == 0 {
                *self.unknown.entry((domain.into(), node.op_type.clone())).or_default() += 1;
            }
            return vec![Fact::default(); node.outputs.len()];
        };
        let input =
            |value: &Option<ValueId>| value.map(|value| (graph.value_name(value), &scope.facts[at(value)]));
        let name = |value: &Option<ValueId>| value.map_or("", |value| graph.value_name(value));
        let mut cx = Cx {
            node,
            opset: env.opset(domain),
            inputs: node.inputs.iter().map(input).collect(),
            outputs: vec![Fact::default(); node.outputs.len()],
            names: node.outputs.iter().map(name).collect(),
            arguments: env.arguments,
            place: env.place,
        };
        let outcome = rule(&mut cx);
        let outputs = cx.outputs;
        if let Err(Stop::Conflict(kind)) = outcome {
            self.conflict(env, (id, node), *kind);
        }
        outputs
    }

    /// A function's body, with what is known of the call's inputs.
    fn call(
        &mut self,
        scope: &mut Scope,
        env: Env<'_>,
        (id, node): (NodeId, &Node),
        function: &heirloom_graph::Function,
    ) -> Vec<Fact> {
        let mut arguments: Attributes =
            function.defaults().iter().map(|(name, value)| (name.into(), value.clone())).collect();
        for (name, value) in node.attributes.iter() {
            match value {
                heirloom_graph::AttrValue::Reference(to) => {
                    if let Some(value) = env.arguments.and_then(|outer| outer.get(to)) {
                        arguments.set(name, value.clone());
                    }
                }
                value => arguments.set(name, value.clone()),
            }
        }
        let inputs = node.inputs.iter().map(|it| it.map(|value| scope.facts[at(value)].clone())).collect();
        let place = format!("{}{}/", env.place, node.describe(id));
        let inner = Env { opsets: function.opset_imports(), arguments: Some(&arguments), place: &place };
        let body = function.body();
        let inner = self.graph(body, inner, inputs, &|_| Fact::default());
        let outputs = body.outputs().iter().map(|&value| inner.facts[at(value)].clone());
        let outputs: Vec<Fact> = outputs.take(node.outputs.len()).collect();
        scope.keep(id, "", inner);
        outputs
    }
}

/// The declared type of a main input. An extent of which nothing is declared is a symbol all the same: `input.0`.
fn named(ty: &heirloom_types::ValueType, input: &str) -> Type {
    let mut ty = Type::from(ty);
    if let Type::Tensor(tensor) = &mut ty
        && let Some(dims) = &mut tensor.dims
    {
        for (axis, dim) in dims.iter_mut().enumerate() {
            dim.get_or_insert_with(|| Expr::symbol(&format!("{input}.{axis}")));
        }
    }
    ty
}

pub(crate) fn at(value: ValueId) -> usize {
    value.0 as usize
}
