//! Every fault of a model.

use heirloom_mem::Bytes;
use heirloom_proto::{
    ExternalResolver, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StructTypeProto,
    ValueInfoProto,
};
use rustc_hash::FxHashSet;

use crate::function::canonical_domain;
use crate::graph::Source;
use crate::import::{Context, describe_node, function, training_graph};
use crate::model::{Imported, folder_of, import_model};
use crate::path::{FaultList, Path};
use crate::{Error, Fault, Graph, OpenOptions, Problem};

/// Every fault of a model, each with its path, in its graph, bodies, functions, types, constants, bindings and
/// codecs. External payloads are looked up through `resolver`; nothing is executed.
///
/// Beside all that forbids to open a model ([`Model::open`](crate::Model::open) lists the same), these are faults:
/// nodes out of order, operators of a domain that is not imported, main inputs and outputs without a type or of
/// one name, positions of sparse tensors that do not ascend, and codecs that are no codecs.
pub fn verify(proto: &ModelProto, resolver: &ExternalResolver) -> Vec<Fault> {
    let mut faults = FaultList::default();
    let imported = import_model(proto, resolver, false, true, &mut faults);
    opset_imports(proto.opset_import(), &mut faults, &Path::ROOT);
    training(proto, &imported, resolver, &mut faults);
    let mut strict = Strict { imported: &imported, resolver, faults: &mut faults };
    let path = Path::ROOT.field("graph");
    if let Some(graph) = proto.graph() {
        strict.main_values(graph, &path);
        strict.encoded(graph, &path);
        strict.nodes(graph.node(), proto.opset_import(), &path);
        strict.order(&imported.graph, &path);
    }
    for (index, function) in proto.functions().iter().enumerate() {
        let path = Path::ROOT.index("functions", index);
        opset_imports(function.opset_import(), strict.faults, &path);
        strict.nodes(function.node(), function.opset_import(), &path);
        strict.order(imported.functions[index].body(), &path);
    }
    for (index, ty) in proto.struct_types().iter().enumerate() {
        strict.codecs(ty, &Path::ROOT.index("struct_types", index));
    }
    faults.into_vec()
}

/// Every fault of a model file, as [`verify`].
///
/// # Errors
/// When the file cannot be mapped or is no model at all.
pub fn verify_file(path: &std::path::Path, options: &OpenOptions) -> Result<Vec<Fault>, Error> {
    let bytes = Bytes::map_file(path).map_err(heirloom_proto::Error::from)?;
    let decoded = ModelProto::decode(bytes);
    let proto =
        decoded.map_err(|source| heirloom_proto::Error::Decode { file: Some(path.into()), source })?;
    Ok(verify(&proto, &options.resolver(Some(folder_of(path)))?))
}

/// Graphs of training: the algorithm's sees the main graph's values.
fn training(proto: &ModelProto, imported: &Imported, resolver: &ExternalResolver, faults: &mut FaultList) {
    let context = Context { catalogue: &imported.catalogue, resolver, defer_missing: false, is_strict: true };
    for (index, training) in proto.training_info().iter().enumerate() {
        let path = Path::ROOT.index("training_info", index);
        if let Some(graph) = training.initialization() {
            training_graph(graph, Graph::default(), &context, faults, &path.field("initialization"));
        }
        if let Some(graph) = training.algorithm() {
            training_graph(graph, imported.graph.clone(), &context, faults, &path.field("algorithm"));
        }
    }
}

fn opset_imports(imports: &[OperatorSetIdProto], faults: &mut FaultList, path: &Path<'_>) {
    let mut seen = rustc_hash::FxHashMap::default();
    for (index, import) in imports.iter().enumerate() {
        let path = path.index("opset_import", index);
        if import.version() < 1 {
            let (domain, version) = (import.domain().into(), import.version());
            faults.push(&path, Problem::OpsetVersion { domain, version });
        }
        if let Some(first) = seen.insert(canonical_domain(import.domain()), index) {
            let (name, first) = (import.domain().into(), format!("opset_import[{first}]"));
            faults.push(&path, Problem::Duplicate { what: "domain", name, first });
        }
    }
}

/// The rules that opening a model does not ask for.
struct Strict<'a> {
    imported: &'a Imported,
    resolver: &'a ExternalResolver,
    faults: &'a mut FaultList,
}

impl Strict<'_> {
    fn main_values(&mut self, graph: &GraphProto, path: &Path<'_>) {
        let sides: [(&'static str, &[ValueInfoProto]); 2] =
            [("input", graph.input()), ("output", graph.output())];
        for (what, values) in sides {
            for (index, value) in values.iter().enumerate() {
                if value.type_().is_none_or(|ty| ty.value().is_none()) && !value.name().is_empty() {
                    let problem = Problem::NoType { what, name: value.name().into() };
                    self.faults.push(&path.index(what, index), problem);
                }
            }
        }
    }

    /// Operators' domains and calls of functions, in bodies too.
    fn nodes(&mut self, nodes: &[NodeProto], imports: &[OperatorSetIdProto], path: &Path<'_>) {
        let domains: FxHashSet<&str> =
            imports.iter().map(|import| canonical_domain(import.domain())).collect();
        self.nodes_of(nodes, &domains, path);
    }

    fn nodes_of(&mut self, nodes: &[NodeProto], domains: &FxHashSet<&str>, path: &Path<'_>) {
        for (index, node) in nodes.iter().enumerate() {
            let path = path.index("node", index);
            if !domains.contains(canonical_domain(node.domain())) && !node.op_type().is_empty() {
                let mut names: Vec<String> = domains.iter().map(|&domain| shown_domain(domain)).collect();
                names.sort();
                let (op, domain) = (node.op_type().into(), shown_domain(node.domain()));
                self.faults.push(&path, Problem::NoOpset { op, domain, domains: names });
            }
            self.call(node, &path);
            for (index, attribute) in node.attribute().iter().enumerate() {
                let path = path.index("attribute", index);
                if let Some(body) = attribute.g() {
                    self.body(body, domains, &path.field("g"));
                }
                for (index, body) in attribute.graphs().iter().enumerate() {
                    self.body(body, domains, &path.index("graphs", index));
                }
            }
        }
    }

    fn body(&mut self, body: &GraphProto, domains: &FxHashSet<&str>, path: &Path<'_>) {
        self.encoded(body, path);
        self.nodes_of(body.node(), domains, path);
    }

    /// The codecs of inline types that a graph's constants have.
    fn encoded(&mut self, graph: &GraphProto, path: &Path<'_>) {
        for (index, encoded) in graph.encoded_initializer().iter().enumerate() {
            if let Some(ty) = encoded.struct_type() {
                self.codecs(ty, &path.index("encoded_initializer", index).field("struct_type"));
            }
        }
    }

    fn call(&mut self, node: &NodeProto, path: &Path<'_>) {
        let Some(function) = self.called(node) else { return };
        let body = self.imported.functions[function].body();
        let sizes = [
            ("inputs", body.inputs().len(), node.input().len()),
            ("outputs", body.outputs().len(), node.output().len()),
        ];
        for (what, expected, actual) in sizes {
            if actual > expected {
                let function = node.op_type().into();
                self.faults.push(path, Problem::CallSize { function, what, expected, actual });
            }
        }
    }

    fn called(&self, node: &NodeProto) -> Option<usize> {
        let key = (canonical_domain(node.domain()).into(), node.op_type().into(), node.overload().into());
        self.imported.by_name.get(&key).copied()
    }

    fn order(&mut self, graph: &Graph, path: &Path<'_>) {
        for (id, node) in graph.nodes().iter().enumerate() {
            let path = path.index("node", id);
            let read = node.inputs.iter().flatten().copied().chain(node.captures());
            let later = read.into_iter().find_map(|value| match graph.entry(value).source {
                Source::Node(producer) if index(producer.0) > id => Some((value, producer)),
                _ => None,
            });
            if let Some((value, producer)) = later
                && graph.order().len() == graph.nodes().len()
            {
                let place = u32::try_from(id).unwrap_or(u32::MAX);
                self.faults.push(
                    &path,
                    Problem::Unsorted {
                        node: describe_node(&node.name, &node.op_type, place),
                        value: graph.value_name(value).into(),
                        producer: graph.node(producer).describe(producer),
                    },
                );
            }
            for (name, body) in node.attributes.iter() {
                // Attributes keep the file's order, but a path needs the field: bodies are named by attribute.
                match body {
                    crate::AttrValue::Graph(body) => self.body_order(body, &path, name),
                    crate::AttrValue::Graphs(bodies) => {
                        bodies.iter().for_each(|body| self.body_order(body, &path, name));
                    }
                    _ => {}
                }
            }
        }
    }

    fn body_order(&mut self, body: &Graph, path: &Path<'_>, attribute: &str) {
        let mut inner = FaultList::default();
        Strict { imported: self.imported, resolver: self.resolver, faults: &mut inner }
            .order(body, &Path::ROOT);
        for Fault { path: rest, problem } in inner.into_vec() {
            self.faults.push_at(path.join(&format!("attribute[`{attribute}`].{rest}")), problem);
        }
    }

    /// A decoder or encoder stands alone: one input, one output, operators of the sets that it imports, and none
    /// of the model's functions.
    fn codecs(&mut self, ty: &StructTypeProto, path: &Path<'_>) {
        if let Some(decoder) = ty.decoder() {
            self.codec(decoder, &path.field("decoder"));
        }
        if let Some(encoder) = ty.encoder() {
            self.codec(encoder, &path.field("encoder"));
        }
    }

    fn codec(&mut self, proto: &FunctionProto, path: &Path<'_>) {
        let (inputs, outputs) = (proto.input().len(), proto.output().len());
        if (inputs, outputs) != (1, 1) {
            self.faults.push(path, Problem::CodecSignature { inputs, outputs });
        }
        opset_imports(proto.opset_import(), self.faults, path);
        let context = Context {
            catalogue: &self.imported.catalogue,
            resolver: self.resolver,
            defer_missing: false,
            is_strict: true,
        };
        let imported = function(proto, &context, self.faults, path);
        self.order(imported.body(), path);
        self.codec_calls(imported.body(), path);
        let empty = Imported::empty();
        Strict { imported: &empty, resolver: self.resolver, faults: self.faults }.nodes(
            proto.node(),
            proto.opset_import(),
            path,
        );
    }

    fn codec_calls(&mut self, body: &Graph, path: &Path<'_>) {
        for (id, node) in body.nodes().iter().enumerate() {
            let path = path.index("node", id);
            let key =
                (canonical_domain(&node.domain).to_owned(), node.op_type.clone(), node.overload.clone());
            if self.imported.by_name.contains_key(&key) {
                let (op, domain) = (node.op_type.clone(), shown_domain(&node.domain));
                self.faults.push(&path, Problem::CodecCalls { op, domain });
            }
            node.bodies().for_each(|body| self.codec_calls(body, &path));
        }
    }
}

/// ONNX's own domain, which files write as nothing.
fn shown_domain(domain: &str) -> String {
    if canonical_domain(domain).is_empty() { "ai.onnx".into() } else { domain.into() }
}

fn index(id: u32) -> usize {
    usize::try_from(id).expect("an index fits the address space")
}
