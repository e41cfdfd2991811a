//! What is in a model: a report of plain data, made without reading a payload.

mod constants;
mod text;
mod types;

use std::collections::BTreeMap;
use std::path::PathBuf;

use heirloom_proto::{FunctionProto, GraphProto, NodeProto};

use crate::function::canonical_domain;
use crate::{Graph, Model, ValueId};

pub use constants::{ConstantKind, ConstantReport, LayoutReport, PlaceReport};
pub use types::{FieldContent, FieldReport, TypeReport};

/// What is in a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inspection {
    /// The file, where the model was opened from one.
    pub path: Option<PathBuf>,
    /// The version of the representation.
    pub ir_version: i64,
    /// The tool that made the model, with its version.
    pub producer: String,
    /// The main graph's name.
    pub graph_name: String,
    /// Operator sets with their versions; ai.onnx by that name.
    pub opsets: Vec<(String, i64)>,
    /// The main graph's inputs.
    pub inputs: Vec<ValueReport>,
    /// The main graph's outputs.
    pub outputs: Vec<ValueReport>,
    /// Input and output of each binding.
    pub bindings: Vec<(String, String)>,
    /// Declared struct types in the order of the file, then inline ones that encoded values use.
    pub types: Vec<TypeReport>,
    /// Constants of all graphs.
    pub constants: Vec<ConstantReport>,
    /// How often each operator occurs in the main graph and its bodies, most often first.
    pub operators: Vec<OperatorReport>,
    /// Functions, as `domain::name`, with their number of nodes.
    pub functions: Vec<(String, usize)>,
    /// The model's annotations.
    pub metadata: Vec<(String, String)>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValueReport {
    /// Its name.
    pub name: String,
    /// Its declared type.
    pub ty: Option<String>,
    /// The value at the other end of its binding.
    pub bound_to: Option<String>,
    /// Whether a call may leave it out, since it has an initializer.
    pub is_optional: bool,
}

/// How often an operator occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorReport {
    /// Its domain; `ai.onnx` by that name.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: usize,
}

impl Inspection {
    /// Bytes of constants' payloads in the model file.
    pub fn inline_bytes(&self) -> u64 {
        let inline = |constant: &&ConstantReport| matches!(constant.place, PlaceReport::Inline);
        self.constants.iter().filter(inline).filter_map(|constant| constant.payload_bytes).sum()
    }

    /// Bytes of constants' payloads in other files.
    pub fn external_bytes(&self) -> u64 {
        let external = |constant: &&ConstantReport| matches!(constant.place, PlaceReport::External { .. });
        self.constants.iter().filter(external).filter_map(|constant| constant.payload_bytes).sum()
    }
}

/// Reports what is in a model. No payload is read, no codec is run; files of payloads need not be there.
pub fn inspect(model: &Model) -> Inspection {
    let (proto, graph) = (model.proto(), model.graph());
    let bindings: Vec<(String, String)> = graph
        .bindings()
        .iter()
        .map(|it| (graph.value_name(it.input).into(), graph.value_name(it.output).into()))
        .collect();
    let mut operators = BTreeMap::new();
    if let Some(main) = proto.graph() {
        count_operators(main.node(), &mut operators);
    }
    let mut operators: Vec<OperatorReport> =
        operators.into_iter().map(|((domain, name), count)| OperatorReport { domain, name, count }).collect();
    operators.sort_by_key(|it| std::cmp::Reverse(it.count));
    let mut types = types::declared(model);
    let constants = constants::all(model, &mut types);
    Inspection {
        path: model.path().map(PathBuf::from),
        ir_version: model.ir_version(),
        producer: [proto.producer_name(), proto.producer_version()].join(" ").trim().into(),
        graph_name: graph.name().into(),
        opsets: model.opset_imports().iter().map(|(domain, version)| (shown(domain), *version)).collect(),
        inputs: values(graph, graph.inputs(), &bindings),
        outputs: values(graph, graph.outputs(), &bindings),
        bindings,
        types,
        constants,
        operators,
        functions: proto.functions().iter().map(function).collect(),
        metadata: Vec::from(model.metadata()),
    }
}

fn function(proto: &FunctionProto) -> (String, usize) {
    (format!("{}::{}", proto.domain(), proto.name()), proto.node().len())
}

fn shown(domain: &str) -> String {
    if canonical_domain(domain).is_empty() { "ai.onnx".into() } else { domain.into() }
}

fn values(graph: &Graph, ids: &[ValueId], bindings: &[(String, String)]) -> Vec<ValueReport> {
    let report = |&value: &ValueId| {
        let name = graph.value_name(value);
        let is_input = graph.is_input(value);
        let other = bindings.iter().find_map(|(input, output)| match name {
            _ if is_input && input == name => Some(output.clone()),
            _ if !is_input && output == name => Some(input.clone()),
            _ => None,
        });
        ValueReport {
            name: name.into(),
            ty: graph.value_type(value).map(ToString::to_string),
            bound_to: other,
            is_optional: is_input && graph.initializer(value).is_some(),
        }
    };
    ids.iter().map(report).collect()
}

fn count_operators(nodes: &[NodeProto], counts: &mut BTreeMap<(String, String), usize>) {
    for node in nodes {
        *counts.entry((shown(node.domain()), node.op_type().into())).or_default() += 1;
        bodies(node).for_each(|body| count_operators(body.node(), counts));
    }
}

fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute().iter().flat_map(|attribute| attribute.g().into_iter().chain(attribute.graphs()))
}
