//! Caches that are made once: the first call's output, kept for all later ones.

use heirloom_proto::attribute_proto::AttributeType;
use heirloom_proto::{AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto};

use super::Edit;
use crate::{Error, Problem};

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    let mut node = NodeProto::new();
    node.set_op_type(op);
    node.set_name(&format!("{output}/{op}"));
    inputs.iter().for_each(|input| node.input_mut().push(input));
    node.output_mut().push(output);
    node
}

/// A body that gives an outer value.
fn branch(value: &str, output: &str, ty: &TypeProto) -> GraphProto {
    let mut graph = GraphProto::new();
    graph.set_name(output);
    graph.node_mut().push(node("Identity", &[value], output));
    graph.output_mut().push(info(output, ty));
    graph
}

fn info(name: &str, ty: &TypeProto) -> ValueInfoProto {
    let mut info = ValueInfoProto::new();
    info.set_name(name);
    info.set_type(ty.clone());
    info
}

fn attribute(name: &str, kind: AttributeType, set: impl FnOnce(&mut AttributeProto)) -> AttributeProto {
    let mut attribute = AttributeProto::new();
    attribute.set_name(name);
    attribute.set_type(kind);
    set(&mut attribute);
    attribute
}

impl Edit<'_> {
    /// Declares that `input` keeps the value that `output` has in the first call that finds it empty (of no elements):
    /// such as keys and values of an encoder, which later calls do not compute again. A new output `OUTPUT.kept` is
    /// what supplies the input: an `If` that gives `output` where the input is empty, else the input. Names and types
    /// are checked by [`finish`](Edit::finish).
    ///
    /// # Errors
    /// When the model has no such input, or the new names are taken.
    pub fn keep_first(&mut self, input: &str, output: &str) -> Result<&mut Self, Error> {
        let inputs = self.graph().map_or(&[][..], GraphProto::input);
        let Some(ty) = inputs.iter().find(|it| it.name() == input).and_then(|it| it.type_()).cloned() else {
            return Err(self.no_such("keep first", input, inputs.iter().map(|it| it.name())));
        };
        let name = |part: &str| format!("{output}.{part}");
        let names = ["kept", "size", "zero", "empty", "new", "old"].map(name);
        let taken = |name: &&String| self.graph().and_then(|graph| super::rename::taken(graph, name));
        if let Some((name, by)) = names.iter().find_map(|name| taken(&name).map(|by| (name.clone(), by))) {
            return Err(Error::call(format!("keep first `{input}`"), Problem::Taken { name, by }));
        }
        let [kept, size, zero, empty, new, old] = &names;
        let mut value = TensorProto::new();
        value.set_data_type(7);
        value.int64_data_mut().push(0);
        let mut constant = node("Constant", &[], zero);
        constant.attribute_mut().push(attribute("value", AttributeType::TENSOR, |a| a.set_t(value)));
        // The bodies' declared type is the input's, which may say less of the output's shape but nothing else.
        let mut choice = node("If", &[empty], kept);
        for (name, value, result) in [("then_branch", output, new), ("else_branch", input, old)] {
            let body = branch(value, result, &ty);
            choice.attribute_mut().push(attribute(name, AttributeType::GRAPH, |a| a.set_g(body)));
        }
        let graph = self.proto.graph_mut();
        let nodes = graph.node_mut();
        nodes.push(node("Size", &[input], size));
        nodes.push(constant);
        nodes.push(node("Equal", &[size, zero], empty));
        nodes.push(choice);
        graph.output_mut().push(info(kept, &ty));
        Ok(self.bind(input, kept))
    }
}
