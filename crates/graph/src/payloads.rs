//! Every payload of a model, wherever it stands.

use heirloom_mem::Bytes;
use heirloom_proto::external::ExternalError;
use heirloom_proto::{
    AttributeProto, EncodedValueProto, ExternalLocation, FunctionProto, GraphProto, ModelProto, NodeProto,
    Payload, SparseTensorProto, TensorProto,
};

use crate::Error;

/// What holds a payload.
pub(crate) enum Holder<'a> {
    Tensor(&'a TensorProto),
    Encoded(&'a EncodedValueProto),
}

/// What holds a payload, to change.
pub(crate) enum HolderMut<'a> {
    Tensor(&'a mut TensorProto),
    Encoded(&'a mut EncodedValueProto),
}

/// What a payload is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A graph's dense or encoded initializer.
    Initializer,
    /// A part of a sparse tensor, an attribute, a parameter.
    Other,
}

impl Holder<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Holder::Tensor(tensor) => tensor.name(),
            Holder::Encoded(value) => value.name(),
        }
    }

    pub(crate) fn payload(&self) -> Result<Payload<'_>, ExternalError> {
        match self {
            Holder::Tensor(tensor) => tensor.payload(),
            Holder::Encoded(value) => value.payload(),
        }
    }

    /// Bytes of `raw_data`.
    pub(crate) fn inline_bytes(&self) -> u64 {
        match self.payload() {
            Ok(Payload::Raw(bytes)) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            _ => 0,
        }
    }
}

impl HolderMut<'_> {
    pub(crate) fn read(&self) -> Holder<'_> {
        match self {
            HolderMut::Tensor(tensor) => Holder::Tensor(tensor),
            HolderMut::Encoded(value) => Holder::Encoded(value),
        }
    }

    pub(crate) fn set_inline(&mut self, bytes: Bytes) {
        match self {
            HolderMut::Tensor(tensor) => {
                tensor.external_data_mut().clear();
                tensor.clear_data_location();
                tensor.set_raw_data(bytes);
            }
            HolderMut::Encoded(value) => {
                value.external_data_mut().clear();
                value.clear_data_location();
                value.set_raw_data(bytes);
            }
        }
    }

    pub(crate) fn set_external(&mut self, place: &ExternalLocation) {
        match self {
            HolderMut::Tensor(tensor) => tensor.set_external(place),
            HolderMut::Encoded(value) => value.set_external(place),
        }
    }
}

type Visit<'v> = &'v mut dyn FnMut(Role, Holder<'_>);

/// Calls `visit` with every payload of a model's graphs and functions, and of declared types' constants.
pub(crate) fn payloads(model: &ModelProto, visit: Visit<'_>) {
    if let Some(graph) = model.graph() {
        of_graph(graph, visit);
    }
    for training in model.training_info() {
        [training.initialization(), training.algorithm()]
            .into_iter()
            .flatten()
            .for_each(|graph| of_graph(graph, visit));
    }
    model.functions().iter().for_each(|function| of_function(function, visit));
}

fn of_function(function: &FunctionProto, visit: Visit<'_>) {
    function.node().iter().for_each(|node| of_node(node, visit));
    function.attribute_proto().iter().for_each(|attribute| of_attribute(attribute, visit));
}

pub(crate) fn of_graph(graph: &GraphProto, visit: Visit<'_>) {
    graph.initializer().iter().for_each(|tensor| visit(Role::Initializer, Holder::Tensor(tensor)));
    graph.sparse_initializer().iter().for_each(|sparse| of_sparse(sparse, visit));
    for value in graph.encoded_initializer() {
        visit(Role::Initializer, Holder::Encoded(value));
        if let Some(affine) = value.affine() {
            let parameters = [affine.scale(), affine.zero_point()];
            parameters.into_iter().flatten().for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
        }
    }
    graph.node().iter().for_each(|node| of_node(node, visit));
}

fn of_sparse(sparse: &SparseTensorProto, visit: Visit<'_>) {
    let parts = [sparse.values(), sparse.indices()];
    parts.into_iter().flatten().for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
}

fn of_node(node: &NodeProto, visit: Visit<'_>) {
    node.attribute().iter().for_each(|attribute| of_attribute(attribute, visit));
}

fn of_attribute(attribute: &AttributeProto, visit: Visit<'_>) {
    let tensors = attribute.t().into_iter().chain(attribute.tensors());
    tensors.for_each(|tensor| visit(Role::Other, Holder::Tensor(tensor)));
    let sparse = attribute.sparse_tensor().into_iter().chain(attribute.sparse_tensors());
    sparse.for_each(|sparse| of_sparse(sparse, visit));
    attribute.g().into_iter().chain(attribute.graphs()).for_each(|graph| of_graph(graph, visit));
}

/// Which payloads to change, and how. Messages without such a payload are not touched.
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
    let wants =
        |changer: &Changer<'_>, function: &FunctionProto| changer.wants(|visit| of_function(function, visit));
    if model.functions().iter().any(|function| wants(&changer, function)) {
        for function in model.functions_mut() {
            if wants(&changer, function) {
                changer.nodes_of(function.node_mut())?;
                changer.attributes(function.attribute_proto_mut())?;
            }
        }
    }
    let graphs = |training: &heirloom_proto::TrainingInfoProto, visit: Visit<'_>| {
        let graphs = [training.initialization(), training.algorithm()];
        graphs.into_iter().flatten().for_each(|graph| of_graph(graph, visit));
    };
    if model.training_info().iter().any(|training| changer.wants(|visit| graphs(training, visit))) {
        for training in model.training_info_mut() {
            if training.initialization().is_some_and(|g| changer.wants(|visit| of_graph(g, visit))) {
                changer.graph(training.initialization_mut())?;
            }
            if training.algorithm().is_some_and(|g| changer.wants(|visit| of_graph(g, visit))) {
                changer.graph(training.algorithm_mut())?;
            }
        }
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
