//! Messages of nodes, in one line each.

use heirloom_proto::attribute_proto::AttributeType as T;
use heirloom_proto::{AttributeProto, NodeProto};

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

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    let mut attribute = AttributeProto::new();
    attribute.set_name(name);
    attribute.set_type(T::INT);
    attribute.set_i(value);
    attribute
}
