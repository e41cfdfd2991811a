//! Bodies of functions in the place of calls.

use std::sync::Arc;

use heirloom_graph::Function;
use heirloom_proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use rustc_hash::FxHashMap;

use super::PassCx;
use super::apply::defined;
use super::edits::Edits;
use super::lift;
use super::view::View;
use crate::message::node;

pub(super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    for (id, call) in view.graph.ordered() {
        let Some(function) = cx.model.function(&call.domain, &call.op_type, &call.overload) else { continue };
        let at = cx.model.functions().iter().position(|it| Arc::ptr_eq(it, function));
        let Some(proto) = at.and_then(|at| cx.model.proto().functions().get(at)) else { continue };
        let Some((imports, opset)) = together(cx, view, function) else { continue };
        let message = &view.nodes[id.0 as usize];
        let inlined = Inline { cx, call: message, function: proto }.nodes();
        edits.swap(id, inlined);
        edits.imports.extend(imports);
        edits.needs(opset);
    }
    edits
}

/// Operator sets that the caller lacks, and the version of the standard ones that both can have.
fn together(cx: &PassCx<'_>, view: &View<'_>, function: &Function) -> Option<(Vec<(String, i64)>, i64)> {
    let (mut imports, mut opset) = (Vec::new(), 0);
    for (domain, version) in function.opset_imports() {
        match view.version(domain) {
            None => imports.push((domain.clone(), *version)),
            Some(own) if own == *version => {}
            // What versions of other domains mean is not known here.
            Some(_) if !matches!(&**domain, "" | "ai.onnx") => {
                if uses(function.body(), domain) {
                    return None;
                }
            }
            // Its nodes mean the same in the caller's version, or the caller can be raised to theirs.
            Some(own) if own > *version && lift::same(function.body(), *version, own) => {}
            Some(own) if own < *version && cx.can(view, *version) => opset = opset.max(*version),
            Some(_) => return None,
        }
    }
    Some((imports, opset))
}

fn uses(graph: &heirloom_graph::Graph, domain: &str) -> bool {
    graph.nodes().iter().any(|node| node.domain == domain || node.bodies().any(|body| uses(body, domain)))
}

struct Inline<'a> {
    cx: &'a PassCx<'a>,
    call: &'a NodeProto,
    function: &'a FunctionProto,
}

/// Names within the function, as they are called outside.
type Names = FxHashMap<String, String>;

impl Inline<'_> {
    fn nodes(&self) -> Vec<NodeProto> {
        let (call, function) = (self.call, self.function);
        let mut names = Names::default();
        for (at, input) in function.input().iter().enumerate() {
            names.insert(input.into(), call.input().get(at).unwrap_or("").into());
        }
        let mut passed = Vec::new();
        for (at, output) in function.output().iter().enumerate() {
            let outer = call.output().get(at).filter(|it| !it.is_empty());
            match (names.get(output), outer) {
                // An input, or an output that has another name already.
                (Some(from), Some(to)) => passed.push(node("Identity", "", &[from], &[to], Vec::new())),
                (None, Some(to)) => {
                    names.insert(output.into(), to.into());
                }
                (_, None) => {}
            }
        }
        let made = function.node().iter().flat_map(|node| node.output().iter());
        self.name(made, &mut names);
        let mut nodes: Vec<NodeProto> = function.node().iter().map(|it| self.node(it, &names)).collect();
        nodes.extend(passed);
        nodes
    }

    /// New names for values that have none yet.
    fn name<'n>(&self, values: impl Iterator<Item = &'n str>, names: &mut Names) {
        let base = self.call.output().iter().find(|it| !it.is_empty()).unwrap_or(self.call.name());
        for value in values.filter(|it| !it.is_empty()) {
            if !names.contains_key(value) {
                names.insert(value.into(), self.cx.fresh(base, value));
            }
        }
    }

    fn node(&self, inner: &NodeProto, names: &Names) -> NodeProto {
        let mut node = inner.clone();
        let outer = |name: &str| names.get(name).map_or_else(|| String::from(name), Clone::clone);
        let (inputs, outputs): (Vec<String>, Vec<String>) =
            (inner.input().iter().map(outer).collect(), inner.output().iter().map(outer).collect());
        node.input_mut().clear();
        node.input_mut().extend(inputs);
        node.output_mut().clear();
        node.output_mut().extend(outputs);
        if !inner.name().is_empty() && !self.call.name().is_empty() {
            node.set_name(&format!("{}/{}", self.call.name(), inner.name()));
        }
        let attributes: Vec<AttributeProto> =
            inner.attribute().iter().filter_map(|it| self.attribute(it, names)).collect();
        node.attribute_mut().clear();
        node.attribute_mut().extend(attributes);
        node
    }

    /// An attribute, or what the call gives for it; `None` where it gives nothing.
    fn attribute(&self, attribute: &AttributeProto, names: &Names) -> Option<AttributeProto> {
        if !attribute.ref_attr_name().is_empty() {
            let named = |it: &&AttributeProto| it.name() == attribute.ref_attr_name();
            let given = self.call.attribute().iter().find(named);
            let mut given = given.or_else(|| self.function.attribute_proto().iter().find(named))?.clone();
            given.set_name(attribute.name());
            return Some(given);
        }
        let mut attribute = attribute.clone();
        if attribute.has_g() {
            self.body(attribute.g_mut(), names);
        }
        if !attribute.graphs().is_empty() {
            attribute.graphs_mut().iter_mut().for_each(|body| self.body(body, names));
        }
        Some(attribute)
    }

    /// A body: its own values get new names, others are those of the function.
    fn body(&self, body: &mut GraphProto, around: &Names) {
        let own: Vec<String> = defined(body).map(String::from).collect();
        let mut names: Names = around.clone();
        own.iter().for_each(|name| {
            names.remove(name);
        });
        self.name(own.iter().map(String::as_str), &mut names);
        let outer = |name: &str| names.get(name).map_or_else(|| String::from(name), Clone::clone);
        body.input_mut().iter_mut().for_each(|it| it.set_name(&outer(it.name())));
        body.output_mut().iter_mut().for_each(|it| it.set_name(&outer(it.name())));
        body.value_info_mut().iter_mut().for_each(|it| it.set_name(&outer(it.name())));
        body.initializer_mut().iter_mut().for_each(|it| it.set_name(&outer(it.name())));
        body.encoded_initializer_mut().iter_mut().for_each(|it| it.set_name(&outer(it.name())));
        for sparse in body.sparse_initializer_mut() {
            let name = sparse.values().map(|it| outer(it.name()));
            name.into_iter().for_each(|name| sparse.values_mut().set_name(&name));
        }
        let nodes: Vec<NodeProto> = body.node().iter().map(|it| self.node(it, &names)).collect();
        *body.node_mut() = nodes;
    }
}
