//! A graph as a pass sees it: the main one, a body, or a function's.

use heirloom_graph::{AttrValue, Graph, Initializer, Model, Node, NodeId, ValueId};
use heirloom_infer::{Dim, Elem, Fact, Scope, ShapesContext};
use heirloom_mem::{DType, Tensor};
use heirloom_proto::{GraphProto, NodeProto};
use rustc_hash::FxHashSet;

/// Where a graph stands in a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The function that it is in; `None` within the main graph.
    pub(super) function: Option<usize>,
    /// The bodies that lead to it: a node, its attribute, and which of the attribute's graphs.
    pub(super) bodies: Vec<(usize, usize, Option<usize>)>,
}

/// A graph, and which of its values keep their names.
pub(crate) struct View<'a> {
    pub(super) model: &'a Model,
    pub(super) graph: &'a Graph,
    /// The messages of the graph's nodes.
    pub(super) nodes: &'a [NodeProto],
    /// Values that keep their names: outputs, and those that annotations name.
    pub(super) named: FxHashSet<ValueId>,
    /// The graph around a body.
    pub(super) around: Option<&'a View<'a>>,
    pub(super) place: Place,
    facts: Option<&'a Scope>,
    readers: Vec<Vec<NodeId>>,
}

/// Calls `visit` with every graph of a model: each before the bodies in it.
pub(super) fn each(model: &Model, shapes: Option<&ShapesContext>, visit: &mut dyn FnMut(&View<'_>)) {
    let proto = model.proto();
    let Some(graph) = proto.graph() else { return };
    let mut named: FxHashSet<ValueId> = FxHashSet::default();
    for annotation in graph.quantization_annotation() {
        let parameters = annotation.quant_parameter_tensor_names().iter().map(|it| it.value());
        let names = std::iter::once(annotation.tensor_name()).chain(parameters);
        named.extend(names.filter_map(|it| model.graph().value(it)));
    }
    // Training changes initializers by name and sees all values.
    if !proto.training_info().is_empty() {
        named.extend(model.graph().values());
    }
    let main = View::new(model, model.graph(), graph.node(), None, Place::default());
    let main = View { facts: shapes.map(ShapesContext::main), ..main.with_named(named) };
    main.each(visit);
    for (index, (function, proto)) in model.functions().iter().zip(proto.functions()).enumerate() {
        let place = Place { function: Some(index), bodies: Vec::new() };
        View::new(model, function.body(), proto.node(), None, place).each(visit);
    }
}

impl<'a> View<'a> {
    fn new(
        model: &'a Model,
        graph: &'a Graph,
        nodes: &'a [NodeProto],
        around: Option<&'a View<'a>>,
        place: Place,
    ) -> View<'a> {
        let mut readers = vec![Vec::new(); graph.value_count()];
        for (id, node) in graph.ordered() {
            for value in node.inputs.iter().flatten().copied().chain(node.captures()) {
                readers[value.0 as usize].push(id);
            }
        }
        let named = graph.outputs().iter().copied().collect();
        View { model, graph, nodes, named, around, place, facts: None, readers }
    }

    fn with_named(mut self, more: impl IntoIterator<Item = ValueId>) -> View<'a> {
        self.named.extend(more);
        self
    }

    fn each(&self, visit: &mut dyn FnMut(&View<'_>)) {
        visit(self);
        for (index, (node, message)) in self.graph.nodes().iter().zip(self.nodes).enumerate() {
            for (at, attribute) in message.attribute().iter().enumerate() {
                let bodies: Vec<(Option<usize>, &Graph, &GraphProto)> =
                    match node.attributes.get(attribute.name()) {
                        Some(AttrValue::Graph(body)) => {
                            attribute.g().map(|proto| (None, &**body, proto)).into_iter().collect()
                        }
                        Some(AttrValue::Graphs(bodies)) => {
                            let pairs = bodies.iter().zip(attribute.graphs()).enumerate();
                            pairs.map(|(which, (body, proto))| (Some(which), &**body, proto)).collect()
                        }
                        _ => continue,
                    };
                for (which, body, proto) in bodies {
                    let mut place = self.place.clone();
                    place.bodies.push((index, at, which));
                    let id = NodeId(u32::try_from(index).expect("fewer than 2^32 nodes"));
                    let facts = self.facts.and_then(|scope| scope.body(id, attribute.name()));
                    let inner = View::new(self.model, body, proto.node(), Some(self), place);
                    View { facts, ..inner }.each(visit);
                }
            }
        }
    }

    pub(super) fn is_function(&self) -> bool {
        self.place.function.is_some()
    }

    /// The version of the standard operators here.
    pub(super) fn opset(&self) -> i64 {
        let version = match self.place.function {
            Some(index) => self.model.functions()[index].opset(""),
            None => self.model.opset(""),
        };
        version.unwrap_or(0)
    }

    /// The version of a domain's operators here.
    pub(super) fn version(&self, domain: &str) -> Option<i64> {
        match self.place.function {
            Some(index) => self.model.functions()[index].opset(domain),
            None => self.model.opset(domain),
        }
    }

    pub(super) fn name(&self, value: ValueId) -> &'a str {
        self.graph.value_name(value)
    }

    /// The nodes that read a value, or a body of which does; one for each time.
    pub(super) fn readers(&self, value: ValueId) -> &[NodeId] {
        &self.readers[value.0 as usize]
    }

    /// Whether one node alone reads a value, once, and nothing else sees it.
    pub(super) fn is_inner(&self, value: ValueId) -> bool {
        self.readers(value).len() == 1 && !self.named.contains(&value)
    }

    /// The node that makes a value, if it is this standard operator.
    pub(super) fn made_by(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        let node = self.graph.node(self.graph.producer(value)?);
        is_standard(node, op).then_some(node)
    }

    /// The same, and nothing else sees the value.
    pub(super) fn inner_by(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        self.made_by(value, op).filter(|_| self.is_inner(value))
    }

    /// The constant initializer that a value is, here or around, if no feed may override it.
    pub(super) fn initializer(&self, value: ValueId) -> Option<&'a Initializer> {
        if self.graph.is_constant(value) {
            return self.graph.initializer(value);
        }
        let (capture, around) = (self.graph.captures().iter().find(|it| it.inner == value)?, self.around?);
        around.initializer(capture.outer)
    }

    /// The constant tensor that a value is: an initializer, or what a node `Constant` makes.
    pub(super) fn constant(&self, value: ValueId) -> Option<Tensor> {
        if let Some(Initializer::Tensor(tensor)) = self.initializer(value) {
            return Some(tensor.clone());
        }
        if let Some(node) = self.made_by(value, "Constant") {
            return match node.attributes.get("value")? {
                AttrValue::Tensor(tensor) => Some(tensor.clone()),
                _ => None,
            };
        }
        let capture = self.graph.captures().iter().find(|it| it.inner == value)?;
        self.around?.constant(capture.outer)
    }

    /// The one number that a constant holds, and its rank.
    pub(super) fn number(&self, value: ValueId) -> Option<(f64, usize)> {
        let tensor = self.constant(value).filter(|tensor| tensor.len() == 1)?;
        let bytes = tensor.dense_bytes()?;
        // Payloads lie anywhere in the file, at any alignment.
        let number = match tensor.dtype() {
            DType::Float => f32::from_le_bytes(bytes.try_into().ok()?).into(),
            DType::Double => f64::from_le_bytes(bytes.try_into().ok()?),
            DType::Float16 => half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
            DType::BFloat16 => half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
            DType::Int64 => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
            _ => return None,
        };
        Some((number, tensor.shape().len()))
    }

    /// The integers that a value holds, constants or known by shapes.
    pub(super) fn ints(&self, value: ValueId) -> Option<Vec<i64>> {
        if let Some(tensor) = self.constant(value) {
            let bytes = tensor.dense_bytes().filter(|_| tensor.dtype() == DType::Int64)?;
            return Some(bytes.as_chunks::<8>().0.iter().map(|it| i64::from_le_bytes(*it)).collect());
        }
        let number = |elem: &Option<Elem>| match elem {
            Some(Elem::Int(expr)) => expr.as_number(),
            _ => None,
        };
        self.fact(value)?.elems.as_ref()?.iter().map(number).collect()
    }

    pub(super) fn fact(&self, value: ValueId) -> Option<&'a Fact> {
        self.facts.map(|scope| scope.fact(value))
    }

    pub(super) fn dtype(&self, value: ValueId) -> Option<DType> {
        Some(self.fact(value)?.ty.as_ref()?.as_tensor()?.dtype)
    }

    pub(super) fn dims(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.fact(value)?.ty.as_ref()?.as_tensor()?.dims.as_deref()
    }

    pub(super) fn rank(&self, value: ValueId) -> Option<usize> {
        Some(self.dims(value)?.len())
    }
}

/// Whether a node is this operator of ONNX.
pub(super) fn is_standard(node: &Node, op: &str) -> bool {
    node.op_type == op && matches!(&*node.domain, "" | "ai.onnx")
}

impl View<'_> {
    /// The last extent, where it is a number.
    pub(super) fn last_extent(&self, value: ValueId) -> Option<i64> {
        self.dims(value)?.last()?.as_ref()?.as_number()
    }
}
