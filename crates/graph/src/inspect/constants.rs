//! Constants in a report.

use std::path::PathBuf;

use heirloom_mem::{DType, element_count};
use heirloom_proto::external::ExternalError;
use heirloom_proto::{EncodedValueProto, GraphProto, NodeProto, Payload, SparseTensorProto, TensorProto};
use heirloom_types::{EncodedType, Layout, ValueType};
use rustc_hash::FxHashMap;

use super::types::{self, TypeReport};
use crate::Model;

/// A constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConstantReport {
    /// Its name.
    pub name: String,
    /// The graph it belongs to: `graph`, or the way to a body.
    pub graph: String,
    /// How it is stored.
    pub kind: ConstantKind,
    /// The type that operators see; `None` for records without tensor meaning.
    pub logical_type: Option<String>,
    /// Bytes of the payload; `None` for strings, and where it reaches to the end of a file that is not there.
    pub payload_bytes: Option<u64>,
    /// Where the payload is.
    pub place: PlaceReport,
}

/// How a constant is stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConstantKind {
    /// Elements one after another.
    Dense,
    /// Elements that are not zero, with their positions.
    Sparse,
    /// Bytes in a declared layout.
    Encoded(LayoutReport),
}

/// The layout of an encoded constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LayoutReport {
    /// Affine-quantized codes.
    Affine {
        /// The codes' element type.
        storage: String,
        /// Element type and shape of the scales.
        scale: String,
        /// Whether there are zero points.
        has_zero_point: bool,
        /// The axis that scales belong to.
        axis: Option<usize>,
        /// Codes along the axis that share a scale.
        block_size: Option<usize>,
    },
    /// Records of a struct type.
    Struct {
        /// The type's place in [`Inspection::types`](super::Inspection::types).
        type_index: usize,
        /// The type's identity; `None` for inline declarations.
        type_id: Option<u64>,
        /// The type's name.
        type_name: String,
        /// Bytes of a record.
        record_bytes: u64,
        /// How many records.
        records: Option<u64>,
        /// Whether the file brings a decoder.
        has_decoder: bool,
    },
}

/// Where a payload is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlaceReport {
    /// In the model file.
    Inline,
    /// In a file beside it.
    External {
        /// The file as the model names it.
        location: String,
        /// The file itself; `None` where it is not there.
        file: Option<PathBuf>,
        /// The first byte.
        offset: u64,
        /// How many bytes; `None`: to the file's end.
        length: Option<u64>,
    },
}

struct Collector<'a> {
    model: &'a Model,
    types: &'a mut Vec<TypeReport>,
    by_id: FxHashMap<u64, usize>,
    found: Vec<ConstantReport>,
}

/// Constants of the main graph and of bodies; inline types that they use are added to `types`.
pub(super) fn all(model: &Model, types: &mut Vec<TypeReport>) -> Vec<ConstantReport> {
    let by_id = types.iter().enumerate().filter_map(|(index, ty)| Some((ty.type_id?, index))).collect();
    let mut collector = Collector { model, types, by_id, found: Vec::new() };
    if let Some(graph) = model.proto().graph() {
        collector.graph(graph, "graph");
    }
    for function in model.proto().functions() {
        collector.bodies(function.node(), &format!("function {}", function.name()));
    }
    collector.found
}

impl Collector<'_> {
    fn graph(&mut self, graph: &GraphProto, path: &str) {
        for tensor in graph.initializer() {
            let report = self.dense(tensor, path);
            self.found.push(report);
        }
        for sparse in graph.sparse_initializer() {
            let report = self.sparse(sparse, path);
            self.found.extend(report);
        }
        for value in graph.encoded_initializer() {
            let report = self.encoded(value, path);
            self.found.extend(report);
        }
        self.bodies(graph.node(), path);
    }

    fn bodies(&mut self, nodes: &[NodeProto], path: &str) {
        for (index, node) in nodes.iter().enumerate() {
            for attribute in node.attribute() {
                let named =
                    if node.name().is_empty() { format!("node[{index}]") } else { node.name().into() };
                for body in attribute.g().into_iter().chain(attribute.graphs()) {
                    self.graph(body, &format!("{path}/{named}/{}", attribute.name()));
                }
            }
        }
    }

    fn place(&self, payload: Result<Payload<'_>, ExternalError>) -> PlaceReport {
        match payload {
            Ok(Payload::External(place)) => PlaceReport::External {
                file: self.model.resolver().path(&place.location).ok(),
                location: place.location,
                offset: place.offset,
                length: place.length,
            },
            _ => PlaceReport::Inline,
        }
    }

    fn dense(&self, tensor: &TensorProto, graph: &str) -> ConstantReport {
        let dtype = DType::from_onnx(tensor.data_type());
        let shape: Option<Vec<usize>> =
            tensor.dims().iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let bytes = dtype
            .zip(shape.as_ref())
            .and_then(|(dtype, shape)| u64::try_from(dtype.payload_bytes(element_count(shape)?)?).ok());
        let logical = dtype.zip(shape).map(|(dtype, shape)| ValueType::tensor(dtype, &shape).to_string());
        ConstantReport {
            name: tensor.name().into(),
            graph: graph.into(),
            kind: ConstantKind::Dense,
            logical_type: logical,
            payload_bytes: bytes,
            place: self.place(tensor.payload()),
        }
    }

    fn sparse(&self, sparse: &SparseTensorProto, graph: &str) -> Option<ConstantReport> {
        let (values, indices) = (sparse.values()?, sparse.indices()?);
        let (values, indices) = (self.dense(values, graph), self.dense(indices, graph));
        let dtype = DType::from_onnx(sparse.values()?.data_type())?;
        let bytes = values.payload_bytes.zip(indices.payload_bytes).map(|(a, b)| a.saturating_add(b));
        Some(ConstantReport {
            kind: ConstantKind::Sparse,
            logical_type: Some(format!("{dtype}{:?}", sparse.dims())),
            payload_bytes: bytes,
            ..values
        })
    }

    fn encoded(&mut self, value: &EncodedValueProto, graph: &str) -> Option<ConstantReport> {
        let resolver = Some(self.model.resolver());
        let ty = EncodedType::from_proto(value, self.model.catalogue(), resolver, "").ok()?;
        let place = self.place(value.payload());
        let bytes = match &place {
            PlaceReport::External { length, .. } => *length,
            PlaceReport::Inline => u64::try_from(value.raw_data().map_or(0, |bytes| bytes.len())).ok(),
        };
        let layout = match &ty.layout {
            Layout::Affine(affine) => LayoutReport::Affine {
                storage: affine.storage.to_string(),
                scale: ValueType::tensor(affine.scale.dtype(), affine.scale.shape()).to_string(),
                has_zero_point: affine.zero_point.is_some(),
                axis: affine.axis,
                block_size: affine.block_size,
            },
            Layout::Struct(layout) => {
                let declared = &layout.declaration;
                let type_index = self.type_index(declared);
                let record_bytes = u64::try_from(layout.record_bytes).ok()?;
                LayoutReport::Struct {
                    type_index,
                    type_id: layout.type_id.map(std::num::NonZeroU64::get),
                    type_name: declared.name().into(),
                    record_bytes,
                    records: bytes.map(|bytes| bytes / record_bytes),
                    has_decoder: declared.decoder().is_some(),
                }
            }
        };
        let logical = ty.logical.map(|logical| ValueType::tensor(logical.dtype, &logical.shape).to_string());
        Some(ConstantReport {
            name: value.name().into(),
            graph: graph.into(),
            kind: ConstantKind::Encoded(layout),
            logical_type: logical,
            payload_bytes: bytes,
            place,
        })
    }

    /// The place of a type in the report; an inline one is added.
    fn type_index(&mut self, declared: &heirloom_types::StructType) -> usize {
        let id = declared.type_id().map(std::num::NonZeroU64::get);
        let index = id.and_then(|id| self.by_id.get(&id).copied());
        let index = index.unwrap_or_else(|| {
            self.types.push(types::report(declared));
            self.types.len() - 1
        });
        self.types[index].values += 1;
        index
    }
}
