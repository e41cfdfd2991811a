//! Changing payloads. Messages without a payload that is to be changed are not touched.

use heirloom_proto::struct_type_proto::Kind;
use heirloom_proto::struct_type_proto::structure::Field;
use heirloom_proto::{
    AttributeProto, EncodedValueProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto,
    StructTypeProto, TensorProto, TypeProto, type_proto,
};

use super::read::{
    Visit, inline_struct, of_attribute, of_function, of_graph, of_node, of_sparse, of_struct, of_training,
};
use super::{Holder, HolderMut, Role};
use crate::Error;

/// Which payloads to change, and how.
struct Changer<'c> {
    wanted: &'c dyn Fn(Role, &Holder<'_>) -> bool,
    change: &'c mut dyn FnMut(HolderMut<'_>) -> Result<(), Error>,
}

/// Calls `change` with every payload of a model that is `wanted`.
pub(crate) fn payloads_mut(
    model: &mut ModelProto,
    wanted: &dyn Fn(Role, &Holder<'_>) -> bool,
    change: &mut dyn FnMut(HolderMut<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut changer = Changer { wanted, change };
    if model.graph().is_some_and(|graph| changer.wants(|visit| of_graph(graph, visit))) {
        changer.graph(model.graph_mut())?;
    }
    if changer.wants_any(model.functions(), of_function) {
        model.functions_mut().iter_mut().try_for_each(|function| changer.function(function))?;
    }
    if changer.wants_any(model.training_info(), of_training) {
        for training in model.training_info_mut() {
            if training.initialization().is_some_and(|g| changer.wants(|visit| of_graph(g, visit))) {
                changer.graph(training.initialization_mut())?;
            }
            if training.algorithm().is_some_and(|g| changer.wants(|visit| of_graph(g, visit))) {
                changer.graph(training.algorithm_mut())?;
            }
        }
    }
    if changer.wants_any(model.struct_types(), of_struct) {
        model.struct_types_mut().iter_mut().try_for_each(|ty| changer.struct_type(ty))?;
    }
    Ok(())
}

impl Changer<'_> {
    /// Whether one of the payloads that `walk` visits is wanted.
    fn wants(&self, walk: impl FnOnce(Visit<'_>)) -> bool {
        let mut found = false;
        walk(&mut |role, holder| found = found || (self.wanted)(role, &holder));
        found
    }

    /// Whether one of the payloads of some messages is wanted.
    fn wants_any<M>(&self, messages: &[M], walk: fn(&M, Visit<'_>)) -> bool {
        messages.iter().any(|message| self.wants(|visit| walk(message, visit)))
    }

    fn function(&mut self, function: &mut FunctionProto) -> Result<(), Error> {
        if !self.wants(|visit| of_function(function, visit)) {
            return Ok(());
        }
        self.nodes_of(function.node_mut())?;
        if self.wants_any(function.attribute_proto(), of_attribute) {
            self.attributes(function.attribute_proto_mut())?;
        }
        Ok(())
    }

    fn struct_type(&mut self, ty: &mut StructTypeProto) -> Result<(), Error> {
        if !self.wants(|visit| of_struct(ty, visit)) {
            return Ok(());
        }
        match ty.kind() {
            Some(Kind::Array(_)) => self.value_type(ty.array_mut().element_type_mut())?,
            Some(Kind::Structure(_)) => {
                ty.structure_mut().field_mut().iter_mut().try_for_each(|field| self.field(field))?;
            }
            _ => {}
        }
        if ty.has_decoder() {
            self.function(ty.decoder_mut())?;
        }
        if ty.has_encoder() {
            self.function(ty.encoder_mut())?;
        }
        Ok(())
    }

    fn field(&mut self, field: &mut Field) -> Result<(), Error> {
        if field.constant().is_some_and(|tensor| self.wants_tensor(Role::Other, tensor)) {
            return (self.change)(HolderMut::Tensor(field.constant_mut()));
        }
        if field.has_type() { self.value_type(field.type_mut()) } else { Ok(()) }
    }

    fn value_type(&mut self, ty: &mut TypeProto) -> Result<(), Error> {
        if !inline_struct(ty).is_some_and(|inner| self.wants(|visit| of_struct(inner, visit))) {
            return Ok(());
        }
        match ty.value() {
            Some(type_proto::Value::StructType(_)) => self.struct_type(ty.struct_type_mut()),
            Some(type_proto::Value::SequenceType(_)) => {
                self.value_type(ty.sequence_type_mut().elem_type_mut())
            }
            Some(type_proto::Value::OptionalType(_)) => {
                self.value_type(ty.optional_type_mut().elem_type_mut())
            }
            Some(type_proto::Value::MapType(_)) => self.value_type(ty.map_type_mut().value_type_mut()),
            _ => Ok(()),
        }
    }

    fn wants_tensor(&self, role: Role, tensor: &TensorProto) -> bool {
        (self.wanted)(role, &Holder::Tensor(tensor))
    }

    fn graph(&mut self, graph: &mut GraphProto) -> Result<(), Error> {
        if graph.initializer().iter().any(|tensor| self.wants_tensor(Role::Initializer, tensor)) {
            for tensor in graph.initializer_mut() {
                if self.wants_tensor(Role::Initializer, tensor) {
                    (self.change)(HolderMut::Tensor(tensor))?;
                }
            }
        }
        if graph.sparse_initializer().iter().any(|sparse| self.wants(|visit| of_sparse(sparse, visit))) {
            graph.sparse_initializer_mut().iter_mut().try_for_each(|sparse| self.sparse(sparse))?;
        }
        if !graph.encoded_initializer().is_empty() {
            graph.encoded_initializer_mut().iter_mut().try_for_each(|value| self.encoded(value))?;
        }
        self.nodes_of(graph.node_mut())
    }

    fn encoded(&mut self, value: &mut EncodedValueProto) -> Result<(), Error> {
        if (self.wanted)(Role::Initializer, &Holder::Encoded(value)) {
            (self.change)(HolderMut::Encoded(value))?;
        }
        if value.struct_type().is_some_and(|ty| self.wants(|visit| of_struct(ty, visit))) {
            self.struct_type(value.struct_type_mut())?;
        }
        let (scale, zero_point) = match value.affine() {
            None => return Ok(()),
            Some(affine) => (affine.scale(), affine.zero_point()),
        };
        let wanted =
            |part: Option<&TensorProto>| part.is_some_and(|part| self.wants_tensor(Role::Other, part));
        let (scale, zero_point) = (wanted(scale), wanted(zero_point));
        if scale {
            (self.change)(HolderMut::Tensor(value.affine_mut().scale_mut()))?;
        }
        if zero_point {
            (self.change)(HolderMut::Tensor(value.affine_mut().zero_point_mut()))?;
        }
        Ok(())
    }

    fn sparse(&mut self, sparse: &mut SparseTensorProto) -> Result<(), Error> {
        if sparse.values().is_some_and(|part| self.wants_tensor(Role::Other, part)) {
            (self.change)(HolderMut::Tensor(sparse.values_mut()))?;
        }
        if sparse.indices().is_some_and(|part| self.wants_tensor(Role::Other, part)) {
            (self.change)(HolderMut::Tensor(sparse.indices_mut()))?;
        }
        Ok(())
    }

    fn nodes_of(&mut self, nodes: &mut [NodeProto]) -> Result<(), Error> {
        for node in nodes {
            if self.wants(|visit| of_node(node, visit)) {
                self.attributes(node.attribute_mut())?;
            }
        }
        Ok(())
    }

    fn attributes(&mut self, attributes: &mut [AttributeProto]) -> Result<(), Error> {
        for attribute in attributes {
            if !self.wants(|visit| of_attribute(attribute, visit)) {
                continue;
            }
            if attribute.t().is_some_and(|tensor| self.wants_tensor(Role::Other, tensor)) {
                (self.change)(HolderMut::Tensor(attribute.t_mut()))?;
            }
            for tensor in attribute.tensors_mut() {
                if self.wants_tensor(Role::Other, tensor) {
                    (self.change)(HolderMut::Tensor(tensor))?;
                }
            }
            if attribute.has_sparse_tensor() {
                self.sparse(attribute.sparse_tensor_mut())?;
            }
            attribute.sparse_tensors_mut().iter_mut().try_for_each(|sparse| self.sparse(sparse))?;
            if attribute.has_g() {
                self.graph(attribute.g_mut())?;
            }
            attribute.graphs_mut().iter_mut().try_for_each(|graph| self.graph(graph))?;
        }
        Ok(())
    }
}
