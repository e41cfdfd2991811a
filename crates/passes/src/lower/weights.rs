//! Encoded values as standard operators.

use std::sync::Arc;

use heirloom_graph::{AttrValue, Graph, Initializer, Model};
use heirloom_mem::{DType, Tensor};
use heirloom_proto::{FunctionProto, GraphProto, NodeProto, TensorProto};
use heirloom_types::{Affine, EncodedValue, Layout, TensorType, tensor_to_proto};
use rustc_hash::{FxHashMap, FxHashSet};

use super::decoder::{self, Standard};
use super::{LowerError, Weights};
use crate::Evaluate;
use crate::message::{self, all_names, int, node};

/// What a value becomes: constants, and nodes that make it of them.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) constants: Vec<TensorProto>,
    pub(super) nodes: Vec<NodeProto>,
}

/// One lowering.
pub(super) struct Lowering<'m> {
    model: &'m Model,
    weights: Weights,
    evaluate: &'m dyn Evaluate,
    /// Names that are taken anywhere in the model.
    names: FxHashSet<String>,
    changed: Vec<(String, &'static str)>,
    /// The functions that decoders became, by the declaration's address.
    decoders: FxHashMap<usize, Option<Arc<Standard>>>,
    functions: Vec<FunctionProto>,
}

impl<'m> Lowering<'m> {
    pub(super) fn new(model: &'m Model, weights: Weights, evaluate: &'m dyn Evaluate) -> Lowering<'m> {
        let mut names = FxHashSet::default();
        all_names(model.graph(), &mut names);
        let (changed, decoders, functions) = (Vec::new(), FxHashMap::default(), Vec::new());
        Lowering { model, weights, evaluate, names, changed, decoders, functions }
    }

    pub(super) fn finish(self) -> (Vec<(String, &'static str)>, Vec<FunctionProto>) {
        (self.changed, self.functions)
    }

    /// A graph and the bodies in it.
    pub(super) fn graph(&mut self, graph: &Graph, proto: &mut GraphProto) -> Result<(), LowerError> {
        let mut nodes = Vec::new();
        for (value, initializer) in graph.initializers() {
            let Initializer::Encoded(encoded) = initializer else { continue };
            let parts = self.value(graph.value_name(value), encoded)?;
            proto.initializer_mut().extend(parts.constants);
            nodes.extend(parts.nodes);
        }
        if !proto.encoded_initializer().is_empty() {
            proto.encoded_initializer_mut().clear();
        }
        for (index, node) in graph.nodes().iter().enumerate() {
            if node.bodies().any(|body| has_encoded(body)) {
                self.bodies(node, &mut proto.node_mut()[index])?;
            }
        }
        if !nodes.is_empty() {
            proto.node_mut().splice(0..0, nodes);
        }
        Ok(())
    }

    fn bodies(&mut self, node: &heirloom_graph::Node, proto: &mut NodeProto) -> Result<(), LowerError> {
        for attribute in proto.attribute_mut() {
            match node.attributes.get(attribute.name()) {
                Some(AttrValue::Graph(body)) => self.graph(body, attribute.g_mut())?,
                Some(AttrValue::Graphs(bodies)) => {
                    for (body, proto) in bodies.iter().zip(attribute.graphs_mut()) {
                        self.graph(body, proto)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A name that nothing has.
    fn fresh(&mut self, name: &str, part: &str) -> String {
        message::fresh(&mut self.names, name, part)
    }

    fn opset(&self) -> i64 {
        self.model.opset("").unwrap_or(1)
    }

    fn value(&mut self, name: &str, value: &Arc<EncodedValue>) -> Result<Parts, LowerError> {
        let Some(logical) = value.logical.clone() else {
            let reason = "it is no tensor: its type has no logical type".into();
            return Err(LowerError::Value { value: name.into(), reason });
        };
        if self.weights == Weights::Nodes {
            let parts = match &value.layout {
                Layout::Affine(affine) => self.affine(name, value, affine, &logical)?,
                Layout::Struct(_) => self.records(name, value, &logical)?,
            };
            if let Some((parts, what)) = parts {
                self.changed.push((name.into(), what));
                return Ok(parts);
            }
        }
        let dense = self.evaluate.decode(value);
        let dense = dense.map_err(|reason| LowerError::Value { value: name.into(), reason })?;
        self.changed.push((name.into(), "dense"));
        Ok(Parts { constants: vec![constant(&dense, name)?], nodes: Vec::new() })
    }

    /// `DequantizeLinear`, where the model's version of it says as much as the layout.
    fn affine(
        &mut self,
        name: &str,
        value: &EncodedValue,
        affine: &Affine,
        logical: &TensorType,
    ) -> Result<Option<(Parts, &'static str)>, LowerError> {
        let other_output = affine.scale.dtype() != logical.dtype;
        let needed = match affine.storage {
            DType::Int2 | DType::Uint2 => 25,
            _ if other_output => 23,
            DType::Int4 | DType::Uint4 => 21,
            _ if affine.block_size.is_some() => 21,
            _ if affine.scale.dtype() != DType::Float => 19,
            _ if affine.axis.is_some() => 13,
            _ => 10,
        };
        if self.opset() < needed || affine.scale.dtype() == DType::Float8E8M0 && self.opset() < 23 {
            return Ok(None);
        }
        let unfit = |error: heirloom_mem::ViewError| LowerError::Value {
            value: name.into(),
            reason: error.to_string(),
        };
        let codes = Tensor::new(affine.storage, &logical.shape, value.payload.clone()).map_err(unfit)?;
        let codes_name = self.fresh(name, "codes");
        let scale_name = self.fresh(name, "scale");
        let mut parts = Parts::default();
        parts.constants.push(constant(&codes, &codes_name)?);
        parts.constants.push(constant(&affine.scale, &scale_name)?);
        let mut inputs = vec![codes_name, scale_name];
        if let Some(zero_point) = &affine.zero_point {
            let zero_point_name = self.fresh(name, "zero_point");
            parts.constants.push(constant(zero_point, &zero_point_name)?);
            inputs.push(zero_point_name);
        }
        let mut attributes = Vec::new();
        if let Some(axis) = affine.axis {
            attributes.push(int("axis", axis as i64));
        }
        if let Some(size) = affine.block_size {
            attributes.push(int("block_size", size as i64));
        }
        if other_output {
            attributes.push(int("output_dtype", i64::from(logical.dtype.onnx())));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let dequantize = self.fresh(name, "dequantize");
        parts.nodes.push(node("DequantizeLinear", &dequantize, &inputs, &[name], attributes));
        Ok(Some((parts, "DequantizeLinear")))
    }

    /// The decoder of the type as a function over the fields.
    fn records(
        &mut self,
        name: &str,
        value: &EncodedValue,
        logical: &TensorType,
    ) -> Result<Option<(Parts, &'static str)>, LowerError> {
        let Layout::Struct(layout) = &value.layout else { return Ok(None) };
        let key = Arc::as_ptr(&layout.declaration).addr();
        if !self.decoders.contains_key(&key) {
            let number = self.functions.len();
            let standard = decoder::standard(&layout.declaration, number);
            if let Some(standard) = &standard {
                self.functions.push(standard.function.clone());
            }
            self.decoders.insert(key, standard.map(Arc::new));
        }
        let Some(Some(standard)) = self.decoders.get(&key).cloned() else { return Ok(None) };
        let mut parts = Parts::default();
        let mut inputs = Vec::new();
        for (field, path) in &standard.fields {
            let column = decoder::column(value, path);
            let column = column.map_err(|reason| LowerError::Value { value: name.into(), reason })?;
            let constant_name = self.fresh(name, field);
            parts.constants.push(constant(&column, &constant_name)?);
            inputs.push(constant_name);
        }
        let (records, shape) = (self.fresh(name, "records"), self.fresh(name, "shape"));
        let extents: Vec<i64> = logical.shape.iter().map(|&it| it as i64).collect();
        let extents = Tensor::from_vec(&[extents.len()], extents);
        let extents =
            extents.map_err(|it| LowerError::Value { value: name.into(), reason: it.to_string() })?;
        parts.constants.push(constant(&extents, &shape)?);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let (decode, reshape) = (self.fresh(name, "decode"), self.fresh(name, "reshape"));
        let mut call = node(standard.function.name(), &decode, &inputs, &[&records], Vec::new());
        call.set_domain(standard.function.domain());
        parts.nodes.push(call);
        parts.nodes.push(node("Reshape", &reshape, &[&records, &shape], &[name], Vec::new()));
        Ok(Some((parts, "decoder")))
    }
}

fn constant(tensor: &Tensor, name: &str) -> Result<TensorProto, LowerError> {
    let refused = |error: heirloom_types::TensorError| LowerError::Value {
        value: name.into(),
        reason: error.to_string(),
    };
    tensor_to_proto(tensor, name).map_err(refused)
}

fn has_encoded(graph: &Graph) -> bool {
    graph.initializers().any(|(_, it)| matches!(it, Initializer::Encoded(_)))
        || graph.nodes().iter().any(|node| node.bodies().any(|body| has_encoded(body)))
}
