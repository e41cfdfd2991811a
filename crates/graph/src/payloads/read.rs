//! Looking at payloads.

use heirloom_proto::struct_type_proto::Kind;
use heirloom_proto::struct_type_proto::structure::field::Content;
use heirloom_proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, StructTypeProto,
    TrainingInfoProto, TypeProto, type_proto,
};

use super::{Holder, Role};

/// What is called with each payload.
pub(super) type Visit<'v> = &'v mut dyn FnMut(Role, Holder<'_>);

/// Calls `visit` with every payload of a model: of its graphs, functions, types and their codecs.
pub(crate) fn payloads(model: &ModelProto, visit: Visit<'_>) {
    if let Some(graph) = model.graph() {
        of_graph(graph, visit);
    }
    model.training_info().iter().for_each(|training| of_training(training, visit));
    model.functions().iter().for_each(|function| of_function(function, visit));
    model.struct_types().iter().for_each(|ty| of_struct(ty, visit));
}

pub(super) fn of_training(training: &TrainingInfoProto, visit: Visit<'_>) {
    let graphs = [training.initialization(), training.algorithm()];
    graphs.into_iter().flatten().for_each(|graph| of_graph(graph, visit));
}

/// The constants of a declaration, those of inline types in it too, and the payloads of its codecs.
pub(super) fn of_struct(ty: &StructTypeProto, visit: Visit<'_>) {
    match ty.kind() {
        Some(Kind::Array(array)) => {
            if let Some(element) = array.element_type() {
                of_type(element, visit);
            }
        }
        Some(Kind::Structure(structure)) => {
            for field in structure.field() {
                match field.content() {
                    Some(Content::Constant(tensor)) => visit(Role::Other, Holder::Tensor(tensor)),
                    Some(Content::Type(ty)) => of_type(ty, visit),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    ty.decoder().into_iter().chain(ty.encoder()).for_each(|codec| of_function(codec, visit));
}

/// The inline struct type that a type comes down to.
pub(super) fn inline_struct(ty: &TypeProto) -> Option<&StructTypeProto> {
    match ty.value()? {
        type_proto::Value::StructType(ty) => Some(ty),
        type_proto::Value::SequenceType(sequence) => inline_struct(sequence.elem_type()?),
        type_proto::Value::OptionalType(optional) => inline_struct(optional.elem_type()?),
        type_proto::Value::MapType(map) => inline_struct(map.value_type()?),
        _ => None,
    }
}

fn of_type(ty: &TypeProto, visit: Visit<'_>) {
    if let Some(ty) = inline_struct(ty) {
        of_struct(ty, visit);
    }
}

pub(super) fn of_function(function: &FunctionProto, visit: Visit<'_>) {
    function.node().iter().for_each(|node| of_node(node, visit));
    function.attribute_proto().iter().for_each(|attribute| of_attribute(attribute, visit));
}

pub(super) fn of_graph(graph: &GraphProto, visit: Visit<'_>) {
    graph.initializer().iter().for_each(|tensor| visit(Role::Initializer, Holder::Tensor(tensor)));
    graph.sparse_initializer().iter().for_each(|sparse| of_sparse(sparse, visit));
    for value in graph.encoded_initializer() {
        visit(Role::Initializer, Holder::Encoded(value));
        if let Some(affine) = value.affine() {
            let parameters = [affine.scale(), affine.zero_point()];
            parameters.into_iter().flatten().for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
        }
        if let Some(ty) = value.struct_type() {
            of_struct(ty, visit);
        }
    }
    graph.node().iter().for_each(|node| of_node(node, visit));
}

pub(super) fn of_sparse(sparse: &SparseTensorProto, visit: Visit<'_>) {
    let parts = [sparse.values(), sparse.indices()];
    parts.into_iter().flatten().for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
}

pub(super) fn of_node(node: &NodeProto, visit: Visit<'_>) {
    node.attribute().iter().for_each(|attribute| of_attribute(attribute, visit));
}

pub(super) fn of_attribute(attribute: &AttributeProto, visit: Visit<'_>) {
    let tensors = attribute.t().into_iter().chain(attribute.tensors());
    tensors.for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
    let sparse = attribute.sparse_tensor().into_iter().chain(attribute.sparse_tensors());
    sparse.for_each(|sparse| of_sparse(sparse, visit));
    attribute.g().into_iter().chain(attribute.graphs()).for_each(|graph| of_graph(graph, visit));
}
