//! The one place that applies edits to messages. Messages that none is about are not touched.

use heirloom_graph::Model;
use heirloom_proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use rustc_hash::FxHashSet;

use super::edits::Edits;
use super::view::Place;
use crate::message::constant_node;

/// The model's message with the edits of its graphs, each graph's before those of the bodies in it.
pub(super) fn apply(model: &Model, all: &[(Place, Edits)]) -> ModelProto {
    let mut proto = model.proto().clone();
    // Innermost first: places count nodes as they were.
    for (place, edits) in all.iter().rev() {
        let root = match place.function {
            Some(index) if place.bodies.is_empty() => {
                function(edits, &mut proto.functions_mut()[index]);
                continue;
            }
            Some(index) => proto.functions_mut()[index].node_mut(),
            None if place.bodies.is_empty() => {
                main(edits, &mut proto);
                continue;
            }
            None => proto.graph_mut().node_mut(),
        };
        if let Some(body) = body_at(root, &place.bodies) {
            graph(edits, body);
        }
    }
    let mut imports: Vec<(Option<usize>, &(String, i64))> = Vec::new();
    for (place, edits) in all {
        imports.extend(edits.imports.iter().map(|it| (place.function, it)));
    }
    for (function, (domain, version)) in imports {
        let list = match function {
            Some(index) => proto.functions_mut()[index].opset_import_mut(),
            None => proto.opset_import_mut(),
        };
        if !list.iter().any(|it| it.domain() == domain) {
            let mut import = OperatorSetIdProto::new();
            import.set_domain(domain);
            import.set_version(*version);
            list.push(import);
        }
    }
    let gone: FxHashSet<usize> = all.iter().flat_map(|(_, it)| it.functions.iter().copied()).collect();
    if !gone.is_empty() {
        let mut at = 0;
        proto.functions_mut().retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    }
    proto
}

/// Sets the version of the standard operators.
pub(super) fn set_opset(proto: &mut ModelProto, function: Option<usize>, version: i64) {
    let imports = match function {
        Some(index) => proto.functions_mut()[index].opset_import_mut(),
        None => proto.opset_import_mut(),
    };
    let standard = imports.iter_mut().filter(|it| matches!(it.domain(), "" | "ai.onnx"));
    standard.for_each(|it| it.set_version(version));
}

fn body_at<'p>(
    nodes: &'p mut [NodeProto],
    way: &[(usize, usize, Option<usize>)],
) -> Option<&'p mut GraphProto> {
    let ((node, attribute, which), rest) = way.split_first()?;
    let attribute = nodes.get_mut(*node)?.attribute_mut().get_mut(*attribute)?;
    let body = match which {
        Some(which) => attribute.graphs_mut().get_mut(*which)?,
        None => attribute.g_mut(),
    };
    if rest.is_empty() { Some(body) } else { body_at(body.node_mut(), rest) }
}

fn main(edits: &Edits, proto: &mut ModelProto) {
    // Before the fourth version every constant was an input, too, which a feed may override.
    if !edits.made.is_empty() && proto.ir_version() < 4 {
        proto.set_ir_version(4);
    }
    graph(edits, proto.graph_mut());
}

fn graph(edits: &Edits, graph: &mut GraphProto) {
    if concerns_nodes(edits, graph.node()) {
        nodes(edits, graph.node_mut());
    }
    if !edits.constants.is_empty() {
        let is_gone = |name: &str| edits.constants.contains(name);
        if graph.initializer().iter().any(|it| is_gone(it.name())) {
            graph.initializer_mut().retain(|it| !is_gone(it.name()));
        }
        if graph.encoded_initializer().iter().any(|it| is_gone(it.name())) {
            graph.encoded_initializer_mut().retain(|it| !is_gone(it.name()));
        }
        let sparse_name =
            |it: &heirloom_proto::SparseTensorProto| it.values().map_or(String::new(), |it| it.name().into());
        if graph.sparse_initializer().iter().any(|it| is_gone(&sparse_name(it))) {
            graph.sparse_initializer_mut().retain(|it| !is_gone(&sparse_name(it)));
        }
    }
    if !edits.made.is_empty() {
        graph.initializer_mut().extend(edits.made.iter().cloned());
    }
    if !edits.encoded.is_empty() {
        graph.encoded_initializer_mut().extend(edits.encoded.iter().cloned());
    }
    drop_types(graph);
}

fn function(edits: &Edits, function: &mut FunctionProto) {
    if concerns_nodes(edits, function.node()) {
        nodes(edits, function.node_mut());
    }
    if !edits.made.is_empty() {
        function.node_mut().splice(0..0, edits.made.iter().map(constant_node));
    }
}

fn concerns_nodes(edits: &Edits, nodes: &[NodeProto]) -> bool {
    !edits.nodes.is_empty() || nodes.iter().any(|node| concerns(edits, node))
}

fn nodes(edits: &Edits, nodes: &mut Vec<NodeProto>) {
    if !edits.nodes.is_empty() {
        let old = std::mem::take(nodes);
        for (index, node) in old.into_iter().enumerate() {
            match edits.nodes.get(&index) {
                Some(by) => nodes.extend(by.iter().cloned()),
                None => nodes.push(node),
            }
        }
    }
    for node in nodes {
        if concerns(edits, node) {
            rewrite(edits, node);
        }
    }
}

fn concerns(edits: &Edits, node: &NodeProto) -> bool {
    if edits.replaced.is_empty() && edits.renamed.is_empty() {
        return false;
    }
    let inner = |graph: &GraphProto| {
        graph.node().iter().any(|node| concerns(edits, node))
            || graph.output().iter().any(|it| edits.read(it.name()) != it.name())
    };
    node.input().iter().any(|it| edits.read(it) != it)
        || node.output().iter().any(|it| edits.renamed.contains_key(it))
        || node.attribute().iter().any(|it| it.g().into_iter().chain(it.graphs()).any(inner))
}

fn rewrite(edits: &Edits, node: &mut NodeProto) {
    if node.input().iter().any(|it| edits.read(it) != it) {
        let inputs: Vec<String> = node.input().iter().map(|it| edits.read(it).into()).collect();
        node.input_mut().clear();
        node.input_mut().extend(inputs);
    }
    if node.output().iter().any(|it| edits.renamed.contains_key(it)) {
        let new = |it: &str| edits.renamed.get(it).map_or_else(|| String::from(it), Clone::clone);
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
                body(edits, attribute.g_mut());
            }
            attribute.graphs_mut().iter_mut().for_each(|it| body(edits, it));
        }
    }
}

/// A body reads values of the graph around by name, unless it has a value of that name itself.
fn body(edits: &Edits, body: &mut GraphProto) {
    let own: FxHashSet<String> = defined(body).map(String::from).collect();
    let changed = || edits.replaced.keys().chain(edits.renamed.keys());
    if changed().any(|name| own.contains(name)) {
        let rest = edits.names_without(|name| own.contains(name));
        return body_names(&rest, body);
    }
    body_names(edits, body);
}

fn body_names(edits: &Edits, body: &mut GraphProto) {
    for node in body.node_mut() {
        if concerns(edits, node) {
            rewrite(edits, node);
        }
    }
    for output in body.output_mut() {
        let name = String::from(output.name());
        if edits.read(&name) != name {
            output.set_name(edits.read(&name));
        }
    }
}

/// The names of a graph's own values.
pub(super) fn defined(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let dense = graph.initializer().iter().map(|it| it.name());
    let encoded = graph.encoded_initializer().iter().map(|it| it.name());
    let sparse = graph.sparse_initializer().iter().filter_map(|it| it.values()).map(|it| it.name());
    let made = graph.node().iter().flat_map(|node| node.output().iter());
    graph.input().iter().map(|it| it.name()).chain(dense).chain(encoded).chain(sparse).chain(made)
}

/// Types of values that are no more.
fn drop_types(graph: &mut GraphProto) {
    if graph.value_info().is_empty() {
        return;
    }
    let alive: FxHashSet<String> = defined(graph).map(String::from).collect();
    if graph.value_info().iter().any(|it| !alive.contains(it.name())) {
        graph.value_info_mut().retain(|it| alive.contains(it.name()));
    }
}
