//! Renaming a value of the main graph.

use heirloom_proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};

use crate::Problem;
use crate::names::closest;

/// Renames a value and all references to it. Messages that do not name it are not touched.
pub(super) fn value(model: &mut ModelProto, from: &str, to: &str) -> Result<(), Problem> {
    let graph = model.graph().ok_or(Problem::NoGraph)?;
    if !defines(graph, from) || from.is_empty() {
        let mut names = Vec::new();
        each_definition(graph, &mut |name, _| names.push(name));
        let similar = closest(from, names.into_iter());
        return Err(Problem::Undefined { name: from.into(), similar });
    }
    if from == to {
        return Ok(());
    }
    if to.is_empty() {
        return Err(Problem::NoName { what: "value" });
    }
    let renamer = Renamer { from, to };
    let bodies = model.training_info().iter().flat_map(|training| training.algorithm());
    if let Some(by) = taken(graph, to).or_else(|| bodies.into_iter().find_map(|body| taken(body, to))) {
        return Err(Problem::Taken { name: to.into(), by });
    }
    renamer.main_graph(model.graph_mut());
    renamer.training(model);
    Ok(())
}

fn sparse_name(sparse: &SparseTensorProto) -> &str {
    sparse.values().map_or("", TensorProto::name)
}

/// Calls `visit` with each name that a graph itself defines, and what defines it.
fn each_definition<'a>(graph: &'a GraphProto, visit: &mut dyn FnMut(&'a str, &'static str)) {
    graph.input().iter().for_each(|input| visit(input.name(), "an input"));
    graph.initializer().iter().for_each(|tensor| visit(tensor.name(), "an initializer"));
    graph.sparse_initializer().iter().for_each(|sparse| visit(sparse_name(sparse), "an initializer"));
    graph.encoded_initializer().iter().for_each(|value| visit(value.name(), "an initializer"));
    for node in graph.node() {
        node.output().iter().for_each(|name| visit(name, "a node's output"));
    }
}

fn defines(graph: &GraphProto, wanted: &str) -> bool {
    let mut found = false;
    each_definition(graph, &mut |name, _| found = found || name == wanted);
    found
}

fn bodies(attribute: &AttributeProto) -> impl Iterator<Item = &GraphProto> {
    attribute.g().into_iter().chain(attribute.graphs())
}

/// What has a name in a graph or in a body of it.
pub(super) fn taken(graph: &GraphProto, wanted: &str) -> Option<String> {
    let mut found = None;
    each_definition(graph, &mut |name, by| {
        if name == wanted && found.is_none() {
            found = Some(by.into());
        }
    });
    found.or_else(|| {
        let inner = graph.node().iter().flat_map(NodeProto::attribute).flat_map(bodies);
        inner.into_iter().find_map(|body| taken(body, wanted).map(|by| format!("{by} of a body")))
    })
}

#[derive(Clone, Copy)]
struct Renamer<'a> {
    from: &'a str,
    to: &'a str,
}

/// Sets a name in each message of a list that has the old one; the list is not touched where none has.
macro_rules! rename_each {
    ($self:ident, $parent:expr, $list:ident, $list_mut:ident, $name:ident, $set_name:ident) => {
        if $parent.$list().iter().any(|it| it.$name() == $self.from) {
            for it in $parent.$list_mut().iter_mut().filter(|it| it.$name() == $self.from) {
                it.$set_name($self.to);
            }
        }
    };
}

impl Renamer<'_> {
    fn main_graph(self, graph: &mut GraphProto) {
        rename_each!(self, graph, input, input_mut, name, set_name);
        rename_each!(self, graph, initializer, initializer_mut, name, set_name);
        rename_each!(self, graph, encoded_initializer, encoded_initializer_mut, name, set_name);
        if graph.sparse_initializer().iter().any(|sparse| sparse_name(sparse) == self.from) {
            let sparse = graph.sparse_initializer_mut().iter_mut();
            sparse
                .filter(|sparse| sparse_name(sparse) == self.from)
                .for_each(|sparse| sparse.values_mut().set_name(self.to));
        }
        rename_each!(self, graph, persistent_bindings, persistent_bindings_mut, input_name, set_input_name);
        rename_each!(self, graph, persistent_bindings, persistent_bindings_mut, output_name, set_output_name);
        self.references(graph);
    }

    /// The old name as a graph's nodes and annotations use it.
    fn references(self, graph: &mut GraphProto) {
        rename_each!(self, graph, output, output_mut, name, set_name);
        rename_each!(self, graph, value_info, value_info_mut, name, set_name);
        let annotations = graph.quantization_annotation();
        let names_it = |annotation: &heirloom_proto::TensorAnnotation| {
            annotation.tensor_name() == self.from
                || annotation.quant_parameter_tensor_names().iter().any(|it| it.value() == self.from)
        };
        if annotations.iter().any(names_it) {
            for annotation in graph.quantization_annotation_mut().iter_mut().filter(|it| names_it(it)) {
                if annotation.tensor_name() == self.from {
                    annotation.set_tensor_name(self.to);
                }
                rename_each!(
                    self,
                    annotation,
                    quant_parameter_tensor_names,
                    quant_parameter_tensor_names_mut,
                    value,
                    set_value
                );
            }
        }
        if graph.node().iter().any(|node| self.is_in_node(node)) {
            for node in graph.node_mut().iter_mut().filter(|node| self.is_in_node(node)) {
                self.node(node);
            }
        }
    }

    fn node(self, node: &mut NodeProto) {
        for index in 0..node.input().len() {
            if node.input().get(index) == Some(self.from) {
                node.input_mut().set(index, self.to);
            }
        }
        for index in 0..node.output().len() {
            if node.output().get(index) == Some(self.from) {
                node.output_mut().set(index, self.to);
            }
        }
        let is_placed = |config: &heirloom_proto::NodeDeviceConfigurationProto| {
            config.sharding_spec().iter().any(|spec| spec.tensor_name() == self.from)
        };
        if node.device_configurations().iter().any(is_placed) {
            for config in node.device_configurations_mut().iter_mut().filter(|config| is_placed(config)) {
                rename_each!(self, config, sharding_spec, sharding_spec_mut, tensor_name, set_tensor_name);
            }
        }
        if node.attribute().iter().any(|attribute| self.is_in_attribute(attribute)) {
            for attribute in node.attribute_mut().iter_mut().filter(|it| self.is_in_attribute(it)) {
                if attribute.g().is_some_and(|body| self.is_in_body(body)) {
                    self.references(attribute.g_mut());
                }
                if attribute.graphs().iter().any(|body| self.is_in_body(body)) {
                    let bodies = attribute.graphs_mut().iter_mut();
                    bodies.filter(|body| self.is_in_body(body)).for_each(|body| self.references(body));
                }
            }
        }
    }

    fn is_in_node(self, node: &NodeProto) -> bool {
        let is_placed = |config: &heirloom_proto::NodeDeviceConfigurationProto| {
            config.sharding_spec().iter().any(|spec| spec.tensor_name() == self.from)
        };
        node.input().contains(self.from)
            || node.output().contains(self.from)
            || node.device_configurations().iter().any(is_placed)
            || node.attribute().iter().any(|attribute| self.is_in_attribute(attribute))
    }

    fn is_in_attribute(self, attribute: &AttributeProto) -> bool {
        bodies(attribute).any(|body| self.is_in_body(body))
    }

    /// Whether a body means the value: it names it and has no value of that name itself.
    fn is_in_body(self, body: &GraphProto) -> bool {
        if defines(body, self.from) {
            return false;
        }
        body.output().iter().chain(body.value_info()).any(|value| value.name() == self.from)
            || body.node().iter().any(|node| self.is_in_node(node))
    }

    fn training(self, model: &mut ModelProto) {
        let is_in = |training: &heirloom_proto::TrainingInfoProto| {
            training.algorithm().is_some_and(|graph| self.is_in_body(graph))
                || training.initialization_binding().iter().any(|entry| entry.key() == self.from)
                || training.update_binding().iter().any(|entry| entry.key() == self.from)
        };
        if !model.training_info().iter().any(is_in) {
            return;
        }
        for training in model.training_info_mut().iter_mut().filter(|training| is_in(training)) {
            rename_each!(self, training, initialization_binding, initialization_binding_mut, key, set_key);
            rename_each!(self, training, update_binding, update_binding_mut, key, set_key);
            if training.algorithm().is_some_and(|graph| self.is_in_body(graph)) {
                self.references(training.algorithm_mut());
            }
        }
    }
}
