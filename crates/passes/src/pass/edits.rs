//! Edits of a main graph, and the one place that applies them.

use heirloom_graph::{Graph, Model, NodeId, ValueId};
use heirloom_proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use rustc_hash::{FxHashMap, FxHashSet};

/// A main graph, and which of its values keep their names.
pub(crate) struct View<'a> {
    pub(super) graph: &'a Graph,
    /// Values that keep their names: outputs, and those that annotations name.
    pub(super) named: FxHashSet<ValueId>,
}

impl<'a> View<'a> {
    pub(super) fn new(model: &'a Model) -> View<'a> {
        let graph = &**model.graph();
        let mut named: FxHashSet<ValueId> = graph.outputs().iter().copied().collect();
        let annotations = model.proto().graph().into_iter().flat_map(GraphProto::quantization_annotation);
        for annotation in annotations {
            let parameters = annotation.quant_parameter_tensor_names().iter().map(|it| it.value());
            named.extend(
                std::iter::once(annotation.tensor_name()).chain(parameters).filter_map(|it| graph.value(it)),
            );
        }
        // Training changes initializers by name and sees all values.
        if !model.proto().training_info().is_empty() {
            named.extend(graph.values());
        }
        View { graph, named }
    }
}

/// Changes to a main graph.
#[derive(Debug, Default)]
pub struct Edits {
    /// A value whose readers read another one instead.
    replaced: FxHashMap<String, String>,
    /// A value that a node makes under another name, which its readers read.
    renamed: FxHashMap<String, String>,
    nodes: FxHashSet<usize>,
    constants: FxHashSet<String>,
    made: Vec<TensorProto>,
}

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.constants.is_empty() && self.made.is_empty() && self.replaced.is_empty()
    }

    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.nodes.len(), self.constants.len(), self.made.len())
    }

    pub(super) fn replace(&mut self, old: &str, new: &str) {
        self.replaced.insert(old.into(), new.into());
    }

    pub(super) fn rename(&mut self, old: &str, new: &str) {
        self.renamed.insert(old.into(), new.into());
    }

    pub(super) fn touches(&self, value: &str) -> bool {
        let in_map =
            |map: &FxHashMap<String, String>| map.contains_key(value) || map.values().any(|it| it == value);
        in_map(&self.replaced) || in_map(&self.renamed)
    }

    pub(super) fn remove_node(&mut self, node: NodeId) {
        self.nodes.insert(node.0 as usize);
    }

    pub(super) fn remove_constant(&mut self, name: &str) {
        self.constants.insert(name.into());
    }

    pub(super) fn make(&mut self, constant: TensorProto) {
        self.made.push(constant);
    }

    /// What a reader of `name` reads afterwards.
    fn read<'e>(&'e self, name: &'e str) -> &'e str {
        let mut name = name;
        for _ in 0..=self.replaced.len() {
            match self.replaced.get(name) {
                Some(next) => name = next,
                None => break,
            }
        }
        self.renamed.get(name).map_or(name, String::as_str)
    }

    /// The model's message with the edits. Messages that none is about are not touched.
    pub(super) fn apply(&self, model: &Model) -> ModelProto {
        let mut proto = model.proto().clone();
        let graph = proto.graph_mut();
        if graph.node().iter().any(|node| self.concerns(node)) {
            for node in graph.node_mut() {
                if self.concerns(node) {
                    self.node(node);
                }
            }
        }
        if !self.nodes.is_empty() {
            let mut at = 0;
            graph.node_mut().retain(|_| {
                at += 1;
                !self.nodes.contains(&(at - 1))
            });
        }
        if !self.constants.is_empty() {
            let is_gone = |name: &str| self.constants.contains(name);
            if graph.initializer().iter().any(|it| is_gone(it.name())) {
                graph.initializer_mut().retain(|it| !is_gone(it.name()));
            }
            if graph.encoded_initializer().iter().any(|it| is_gone(it.name())) {
                graph.encoded_initializer_mut().retain(|it| !is_gone(it.name()));
            }
            let sparse_name = |it: &heirloom_proto::SparseTensorProto| {
                it.values().map_or(String::new(), |it| it.name().into())
            };
            if graph.sparse_initializer().iter().any(|it| is_gone(&sparse_name(it))) {
                graph.sparse_initializer_mut().retain(|it| !is_gone(&sparse_name(it)));
            }
        }
        graph_extend(graph, &self.made);
        drop_types(graph);
        proto
    }

    fn concerns(&self, node: &NodeProto) -> bool {
        let inner = |graph: &GraphProto| {
            graph.node().iter().any(|node| self.concerns(node))
                || graph.output().iter().any(|it| self.read(it.name()) != it.name())
        };
        node.input().iter().any(|it| self.read(it) != it)
            || node.output().iter().any(|it| self.renamed.contains_key(it))
            || node.attribute().iter().any(|it| it.g().into_iter().chain(it.graphs()).any(inner))
    }

    fn node(&self, node: &mut NodeProto) {
        if node.input().iter().any(|it| self.read(it) != it) {
            let inputs: Vec<String> = node.input().iter().map(|it| self.read(it).into()).collect();
            node.input_mut().clear();
            node.input_mut().extend(inputs);
        }
        if node.output().iter().any(|it| self.renamed.contains_key(it)) {
            let new = |it: &str| self.renamed.get(it).map_or_else(|| String::from(it), Clone::clone);
            let outputs: Vec<String> = node.output().iter().map(new).collect();
            node.output_mut().clear();
            node.output_mut().extend(outputs);
        }
        for attribute in 0..node.attribute().len() {
            let has_bodies =
                node.attribute()[attribute].has_g() || !node.attribute()[attribute].graphs().is_empty();
            if has_bodies {
                let attribute = &mut node.attribute_mut()[attribute];
                if attribute.has_g() {
                    self.body(attribute.g_mut());
                }
                attribute.graphs_mut().iter_mut().for_each(|body| self.body(body));
            }
        }
    }

    /// A body reads values of the graph around by name; names are unique over all of them.
    fn body(&self, body: &mut GraphProto) {
        for node in body.node_mut() {
            if self.concerns(node) {
                self.node(node);
            }
        }
        for output in body.output_mut() {
            let name = String::from(output.name());
            if self.read(&name) != name {
                output.set_name(self.read(&name));
            }
        }
    }
}

fn graph_extend(graph: &mut GraphProto, made: &[TensorProto]) {
    if !made.is_empty() {
        graph.initializer_mut().extend(made.iter().cloned());
    }
}

/// Types of values that are no more.
fn drop_types(graph: &mut GraphProto) {
    let mut alive: FxHashSet<String> = FxHashSet::default();
    graph.node().iter().for_each(|node| alive.extend(node.output().iter().map(String::from)));
    alive.extend(graph.input().iter().map(|it| String::from(it.name())));
    alive.extend(graph.initializer().iter().map(|it| String::from(it.name())));
    alive.extend(graph.encoded_initializer().iter().map(|it| String::from(it.name())));
    alive.extend(
        graph.sparse_initializer().iter().filter_map(|it| it.values().map(|it| String::from(it.name()))),
    );
    if graph.value_info().iter().any(|it| !alive.contains(it.name())) {
        graph.value_info_mut().retain(|it| alive.contains(it.name()));
    }
}
