//! From messages to graphs. The same walk finds what is wrong: loading refuses, verifying lists.

mod attributes;
mod initializers;
mod scope;

use heirloom_proto::{ExternalResolver, FunctionProto, GraphProto, NodeProto, ValueInfoProto};
use heirloom_types::{Catalogue, ValueType};

use crate::graph::Source;
use crate::order::topological;
use crate::path::{FaultList, Path};
use crate::{Function, Graph, Node, NodeId, Problem};
use scope::Draft;

/// What importing needs beside the messages.
pub(crate) struct Context<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) resolver: &'a ExternalResolver,
    /// Whether constants whose files are not there are imported as unavailable.
    pub(crate) defer_missing: bool,
    /// Whether rules that no execution depends on are checked too, and payloads are read where a rule is about
    /// their contents.
    pub(crate) is_strict: bool,
}

/// One import: the graphs around the place where it is, and the faults so far.
pub(crate) struct Importer<'a> {
    context: &'a Context<'a>,
    faults: &'a mut FaultList,
    /// From the outermost graph to the one that is being imported.
    drafts: Vec<Draft>,
    /// The function around, with the attributes that its nodes may refer to.
    function: Option<FunctionScope<'a>>,
}

#[derive(Clone, Copy)]
struct FunctionScope<'a> {
    proto: &'a FunctionProto,
}

impl FunctionScope<'_> {
    fn has_attribute(&self, name: &str) -> bool {
        self.proto.attribute().contains(name)
            || self.proto.attribute_proto().iter().any(|attribute| attribute.name() == name)
    }
}

/// A model's main graph. What cannot be imported is left out and listed in `faults`.
pub(crate) fn main_graph(
    proto: &GraphProto,
    context: &Context<'_>,
    faults: &mut FaultList,
    path: &Path<'_>,
) -> Graph {
    let mut importer = Importer { context, faults, drafts: Vec::new(), function: None };
    importer.graph(proto, path)
}

/// A graph of training, which sees the values of the graph around it.
pub(crate) fn training_graph(
    proto: &GraphProto,
    around: Graph,
    context: &Context<'_>,
    faults: &mut FaultList,
    path: &Path<'_>,
) {
    let mut importer = Importer { context, faults, drafts: vec![Draft { graph: around }], function: None };
    importer.graph(proto, path);
}

/// A function.
pub(crate) fn function(
    proto: &FunctionProto,
    context: &Context<'_>,
    faults: &mut FaultList,
    path: &Path<'_>,
) -> Function {
    let mut importer =
        Importer { context, faults, drafts: Vec::new(), function: Some(FunctionScope { proto }) };
    importer.function(proto, path)
}

impl<'a> Importer<'a> {
    fn here(&mut self) -> &mut Draft {
        self.drafts.last_mut().expect("a graph is being imported")
    }

    fn fault(&mut self, path: &Path<'_>, problem: Problem) {
        self.faults.push(path, problem);
    }

    fn is_main(&self) -> bool {
        self.drafts.len() == 1 && self.function.is_none()
    }

    fn graph(&mut self, proto: &GraphProto, path: &Path<'_>) -> Graph {
        self.drafts.push(Draft::new(proto.name()));
        for (index, input) in proto.input().iter().enumerate() {
            let path = path.index("input", index);
            self.input(input.name(), &path);
        }
        self.initializers(proto, path);
        self.node_outputs(proto.node(), path);
        self.declared_types(proto.input(), "input", path);
        self.declared_types(proto.output(), "output", path);
        self.declared_types(proto.value_info(), "value_info", path);
        self.nodes(proto.node(), path);
        for (index, output) in proto.output().iter().enumerate() {
            self.output(output.name(), &path.index("output", index));
        }
        self.bindings(proto, path);
        self.finish(path)
    }

    fn function(&mut self, proto: &FunctionProto, path: &Path<'_>) -> Function {
        self.drafts.push(Draft::new(proto.name()));
        for (index, input) in proto.input().iter().enumerate() {
            self.input(input, &path.index("input", index));
        }
        self.node_outputs(proto.node(), path);
        self.declared_types(proto.value_info(), "value_info", path);
        self.nodes(proto.node(), path);
        for (index, output) in proto.output().iter().enumerate() {
            self.output(output, &path.index("output", index));
        }
        let mut defaults = crate::Attributes::default();
        for (index, attribute) in proto.attribute_proto().iter().enumerate() {
            let path = path.index("attribute_proto", index);
            if let Some(value) = self.attribute(attribute, &path) {
                defaults.set(attribute.name(), value);
            }
        }
        Function::new(proto, self.finish(path), defaults)
    }

    fn finish(&mut self, path: &Path<'_>) -> Graph {
        let mut graph = self.drafts.pop().expect("pushed by the caller").graph;
        match topological(&graph.nodes, &graph.values) {
            Ok(order) => graph.order = order,
            Err(cycle) => {
                let nodes = cycle.iter().map(|&id| graph.node(id).describe(id)).collect();
                self.fault(path, Problem::Cycle { nodes });
            }
        }
        graph
    }

    fn input(&mut self, name: &str, path: &Path<'_>) {
        if name.is_empty() {
            self.fault(path, Problem::NoName { what: "input" });
            return;
        }
        match self.here().define(name, Source::Input) {
            Ok(value) => self.here().graph.inputs.push(value),
            Err(_) => {
                let first = self.here().describe(name);
                self.fault(path, Problem::Redefined { name: name.into(), first });
            }
        }
    }

    fn output(&mut self, name: &str, path: &Path<'_>) {
        if name.is_empty() {
            self.fault(path, Problem::NoName { what: "output" });
            return;
        }
        let value = self.read(name, path);
        let first = self.here().graph.outputs.iter().position(|&it| it == value);
        if let Some(first) = first.filter(|_| self.context.is_strict && self.is_main()) {
            let first = format!("output[{first}]");
            self.fault(path, Problem::Duplicate { what: "output", name: name.into(), first });
        }
        self.here().graph.outputs.push(value);
    }

    /// Makes the values of all nodes known, so that an unsorted file and a body find them.
    fn node_outputs(&mut self, nodes: &[NodeProto], path: &Path<'_>) {
        for (index, node) in nodes.iter().enumerate() {
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            for (position, name) in node.output().iter().enumerate() {
                if name.is_empty() {
                    continue;
                }
                if self.here().define(name, Source::Node(id)).is_err() {
                    let first = self.here().describe_source(name, nodes);
                    let path = path.index("node", index);
                    let path = path.index("output", position);
                    self.fault(&path, Problem::Redefined { name: name.into(), first });
                }
            }
        }
    }

    fn nodes(&mut self, nodes: &[NodeProto], path: &Path<'_>) {
        self.here().graph.nodes.reserve(nodes.len());
        for (index, proto) in nodes.iter().enumerate() {
            let node = self.node(proto, &path.index("node", index));
            self.here().graph.nodes.push(node);
        }
    }

    fn node(&mut self, proto: &NodeProto, path: &Path<'_>) -> Node {
        if proto.op_type().is_empty() {
            self.fault(path, Problem::NoOperator);
        }
        let mut inputs = Vec::with_capacity(proto.input().len());
        for (position, name) in proto.input().iter().enumerate() {
            inputs.push(if name.is_empty() {
                None
            } else {
                Some(self.read(name, &path.index("input", position)))
            });
        }
        let outputs = proto.output();
        let outputs = outputs.iter().map(|name| self.here().graph.value(name).filter(|_| !name.is_empty()));
        let outputs = outputs.collect();
        Node {
            name: proto.name().into(),
            op_type: proto.op_type().into(),
            domain: proto.domain().into(),
            overload: proto.overload().into(),
            inputs,
            outputs,
            attributes: self.attributes(proto, path),
        }
    }

    /// The value that `name` stands for here, captured from around where it is not of this graph.
    fn read(&mut self, name: &str, path: &Path<'_>) -> crate::ValueId {
        let level = self.drafts.len() - 1;
        match scope::resolve(&mut self.drafts, level, name) {
            Some(value) if self.here().source(value) != Source::Nothing => value,
            found => {
                let similar = scope::similar(&self.drafts, name);
                self.fault(path, Problem::Undefined { name: name.into(), similar });
                found.unwrap_or_else(|| self.here().undefined(name))
            }
        }
    }

    /// Types of inputs, outputs and values in between.
    fn declared_types(&mut self, values: &[ValueInfoProto], field: &'static str, path: &Path<'_>) {
        for (index, info) in values.iter().enumerate() {
            let path = path.index(field, index);
            // Exporters write empty types where they know none, in bodies above all.
            let Some(proto) = info.type_().filter(|ty| ty.value().is_some()) else { continue };
            let path = path.field("type");
            let Some(ty) = self.value_type(proto, &path) else { continue };
            let Some(value) = self.here().graph.value(info.name()) else { continue };
            if let Some((declared, actual)) = self.here().declare(value, ty) {
                self.fault(&path, Problem::InitializerType { name: info.name().into(), declared, actual });
            }
        }
    }

    fn value_type(&mut self, proto: &heirloom_proto::TypeProto, path: &Path<'_>) -> Option<ValueType> {
        match self.context.catalogue.value_type(proto, "") {
            Ok(ty) => Some(ty),
            Err(faults) => {
                self.faults.extend_types(path, faults.0);
                None
            }
        }
    }

    fn bindings(&mut self, proto: &GraphProto, path: &Path<'_>) {
        if self.is_main() {
            let graph = &mut self.drafts.last_mut().expect("a graph is being imported").graph;
            graph.bindings = crate::bindings::resolve(proto, graph, self.faults, path);
            return;
        }
        for (index, binding) in proto.persistent_bindings().iter().enumerate() {
            let (input, output) = (binding.input_name().into(), binding.output_name().into());
            let path = path.index("persistent_bindings", index);
            self.fault(&path, Problem::BindingInBody { input, output });
        }
    }
}

impl Node {
    /// The node as messages name it: by its name, else by its operator and place.
    pub fn describe(&self, id: NodeId) -> String {
        describe_node(&self.name, &self.op_type, id.0)
    }
}

pub(crate) fn describe_node(name: &str, op: &str, index: u32) -> String {
    if name.is_empty() { format!("node[{index}] (`{op}`)") } else { format!("node `{name}` (`{op}`)") }
}
