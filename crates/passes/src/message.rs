//! Messages of nodes, in one line each.

use heirloom_graph::Graph;
use heirloom_mem::Tensor;
use heirloom_proto::attribute_proto::AttributeType as T;
use heirloom_proto::{AttributeProto, NodeProto, TensorProto};
use heirloom_types::tensor_to_proto;
use rustc_hash::FxHashSet;

/// A node.
pub(crate) fn node(
    op: &str,
    name: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: Vec<AttributeProto>,
) -> NodeProto {
    let mut node = NodeProto::new();
    node.set_op_type(op);
    node.set_name(name);
    inputs.iter().for_each(|input| node.input_mut().push(input));
    outputs.iter().for_each(|output| node.output_mut().push(output));
    node.attribute_mut().extend(attributes);
    node
}

fn attribute(name: &str, ty: T) -> AttributeProto {
    let mut attribute = AttributeProto::new();
    attribute.set_name(name);
    attribute.set_type(ty);
    attribute
}

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    let mut attribute = attribute(name, T::INT);
    attribute.set_i(value);
    attribute
}

pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    let mut attribute = attribute(name, T::FLOAT);
    attribute.set_f(value);
    attribute
}

pub(crate) fn string(name: &str, value: &str) -> AttributeProto {
    let mut attribute = attribute(name, T::STRING);
    attribute.set_s(value.as_bytes());
    attribute
}

pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    let mut attribute = attribute(name, T::INTS);
    attribute.ints_mut().extend(values.iter().copied());
    attribute
}

/// The node `Constant` that makes a tensor under its name.
pub(crate) fn constant_node(tensor: &TensorProto) -> NodeProto {
    let mut value = attribute("value", T::TENSOR);
    let mut unnamed = tensor.clone();
    unnamed.clear_name();
    value.set_t(unnamed);
    node("Constant", "", &[], &[tensor.name()], vec![value])
}

/// A vector of INT64.
pub(crate) fn int64s(name: &str, values: &[i64]) -> TensorProto {
    let tensor = Tensor::from_vec(&[values.len()], Vec::from(values)).expect("as many as the shape says");
    tensor_to_proto(&tensor, name).expect("dense")
}

/// Names of all values and nodes of a graph and the bodies in it.
pub(crate) fn all_names(graph: &Graph, names: &mut FxHashSet<String>) {
    names.extend(graph.values().map(|value| String::from(graph.value_name(value))));
    graph.nodes().iter().for_each(|node| {
        names.insert(node.name.clone());
        node.bodies().for_each(|body| all_names(body, names));
    });
}

/// A name that none of `names` is, which then has it.
pub(crate) fn fresh(names: &mut FxHashSet<String>, name: &str, part: &str) -> String {
    let mut fresh = format!("{name}.{part}");
    let mut number = 0;
    while !names.insert(fresh.clone()) {
        number += 1;
        fresh = format!("{name}.{part}_{number}");
    }
    fresh
}
