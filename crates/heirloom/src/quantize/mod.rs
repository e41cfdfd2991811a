//! Float initializers to encoded ones, and back.

mod affine;
mod names;
mod records;
mod target;

pub use names::NameFilter;
pub use target::{AffineTarget, ShapedTarget, Target, TargetError};

use std::sync::Arc;

use heirloom_graph::{Graph, Initializer, Model, ValueId};
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{DecodeError, DecodedBy, Team};
use heirloom_types::{CodecError, EncodedValue, Layout, Value};

use crate::Engine;

/// What [`Engine::quantize`] does.
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// The form that initializers get.
    pub target: Target,
    /// Which initializers, by name. Without patterns to include, those that operators take encoded: weights of `MatMul`
    /// and `Gemm`, tables of `Gather`.
    pub names: NameFilter,
}

/// An initializer that got another form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its logical element type.
    pub dtype: DType,
    /// Bytes of its payload before, scales and zero points of affine codes included.
    pub bytes_before: u64,
    /// Bytes of its payload now.
    pub bytes_after: u64,
    /// What changed its values, if anything did.
    pub error: Option<Loss>,
    /// What decoded it, where it was decoded.
    pub decoded_by: Option<DecodedBy>,
}

/// How far encoded values lie from those that were given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Square root of the mean squared difference.
    pub rmse: f64,
    /// The greatest difference.
    pub max: f64,
    /// Square root of the mean square of the given values, to compare with.
    pub rms: f64,
}

/// An initializer that stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A model with initializers in another form.
#[derive(Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The model. New payloads are in memory; save it to keep them.
    pub model: Model,
    /// What was converted, in the model's order.
    pub tensors: Vec<TensorReport>,
    /// What was asked for and not converted.
    pub skipped: Vec<Skipped>,
}

/// Why a model could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// No initializer matches.
    #[error("no {what} initializer of the main graph is selected{}", .patterns)]
    Nothing {
        /// `float` or `encoded`.
        what: &'static str,
        /// The patterns, for the message.
        patterns: String,
    },
    /// An encoded value cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The changed model is refused.
    #[error(transparent)]
    Model(#[from] heirloom_graph::Error),
}

impl Engine {
    /// The model with float initializers of the main graph encoded, and how much each lost. Those that the format cannot
    /// hold stay as they are.
    ///
    /// # Errors
    /// When nothing is selected, or the changed model is refused.
    pub fn quantize(&self, model: &Model, options: &QuantizeOptions) -> Result<Converted, QuantizeError> {
        let graph = model.graph();
        let (mut edit, mut tensors, mut skipped) = (model.edit(), Vec::new(), Vec::new());
        for (value, initializer) in graph.initializers() {
            let name = graph.value_name(value);
            let Initializer::Tensor(tensor) = initializer else { continue };
            if !is_float(tensor.dtype()) || !options.names.selects(name) {
                continue;
            }
            let mut skip = |reason: String| skipped.push(Skipped { name: name.into(), reason });
            if options.names.include.is_empty()
                && let Some(reason) = not_taken(graph, value, tensor)
            {
                skip(reason);
                continue;
            }
            match encode(name, tensor, &options.target, self.team()) {
                Ok(encoded) => {
                    let error = loss(tensor, &encoded, self.team());
                    tensors.push(TensorReport {
                        name: name.into(),
                        shape: Vec::from(tensor.shape()),
                        dtype: tensor.dtype(),
                        bytes_before: tensor.byte_len() as u64,
                        bytes_after: stored_bytes(&encoded),
                        error: Some(error),
                        decoded_by: None,
                    });
                    edit.set_initializer(name, &Value::Encoded(Arc::new(encoded)))?;
                }
                Err(reason) => skip(reason),
            }
        }
        if tensors.is_empty() && skipped.is_empty() {
            return Err(nothing("float", &options.names));
        }
        Ok(Converted { model: edit.finish()?, tensors, skipped })
    }

    /// The model with encoded initializers of the main graph as dense tensors of their logical types.
    ///
    /// # Errors
    /// When nothing is selected, a value has neither a codec nor a decoder, or the changed model is refused.
    pub fn dequantize(&self, model: &Model, names: &NameFilter) -> Result<Converted, QuantizeError> {
        let graph = model.graph();
        let (mut edit, mut tensors, mut skipped) = (model.edit(), Vec::new(), Vec::new());
        for (value, initializer) in graph.initializers() {
            let name = graph.value_name(value);
            let Initializer::Encoded(encoded) = initializer else { continue };
            if !names.selects(name) {
                continue;
            }
            if encoded.logical.is_none() {
                skipped.push(Skipped { name: name.into(), reason: "it has no logical type".into() });
                continue;
            }
            let (tensor, by) = self.decode(encoded)?;
            tensors.push(TensorReport {
                name: name.into(),
                shape: Vec::from(tensor.shape()),
                dtype: tensor.dtype(),
                bytes_before: stored_bytes(encoded),
                bytes_after: tensor.byte_len() as u64,
                error: None,
                decoded_by: Some(by),
            });
            edit.set_initializer(name, &Value::Tensor(tensor))?;
        }
        if tensors.is_empty() && skipped.is_empty() {
            return Err(nothing("encoded", names));
        }
        Ok(Converted { model: edit.finish()?, tensors, skipped })
    }
}

fn nothing(what: &'static str, names: &NameFilter) -> QuantizeError {
    QuantizeError::Nothing { what, patterns: names.to_string() }
}

fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Float16 | DType::BFloat16)
}

fn stored_bytes(value: &EncodedValue) -> u64 {
    let parameters = match &value.layout {
        Layout::Affine(affine) => {
            affine.scale.byte_len() + affine.zero_point.as_ref().map_or(0, Tensor::byte_len)
        }
        Layout::Struct(_) => 0,
    };
    (value.payload.len() + parameters) as u64
}

/// Why operators would not take the constant encoded; `None` where all that read it do.
fn not_taken(graph: &Graph, value: ValueId, tensor: &Tensor) -> Option<String> {
    if graph.outputs().contains(&value) {
        return Some("it is an output of the graph".into());
    }
    for node in graph.nodes() {
        let in_body = node.captures().any(|captured| captured == value);
        for (at, _) in node.inputs.iter().enumerate().filter(|(_, input)| **input == Some(value)) {
            let takes = match (&*node.op_type, at) {
                ("MatMul", 1) => tensor.shape().len() >= 2,
                ("Gemm", 1) => tensor.shape().len() == 2,
                ("Gather", 0) => {
                    tensor.shape().len() >= 2 && node.attributes.int_or("axis", 0).is_ok_and(|axis| axis == 0)
                }
                _ => false,
            };
            if !takes || !matches!(&*node.domain, "" | "ai.onnx") {
                return Some(format!("input {at} of `{}` takes no encoded values", node.op_type));
            }
        }
        if in_body {
            return Some(format!("a body of `{}` reads it", node.op_type));
        }
    }
    None
}

fn encode(name: &str, tensor: &Tensor, target: &Target, team: &dyn Team) -> Result<EncodedValue, String> {
    match target {
        Target::Records(format) => records::of_format(name, tensor, format, team),
        Target::Shaped(family) => records::of_family(name, tensor, family),
        Target::Affine(affine) => affine::encode(name, tensor, affine),
    }
}

/// Elements that are compared at a time.
const PART: usize = 1 << 16;

/// How far `encoded` lies from `tensor`.
fn loss(tensor: &Tensor, encoded: &EncodedValue, team: &dyn Team) -> Loss {
    let codec = encoded.layout.as_struct().and_then(|layout| heirloom_formats::codec(layout));
    let total = tensor.len();
    let sums = std::sync::Mutex::new((0.0f64, 0.0f64, 0.0f64));
    team.run(total.div_ceil(PART), &|part| {
        let first = part * PART;
        let given = records::floats(tensor, first, PART.min(total - first));
        let mut got = vec![0.0; given.len()];
        let decoded: Result<(), CodecError> = encoded.decode_range(codec.as_deref(), first, &mut got);
        let (mut squares, mut signal, mut max) = (0.0f64, 0.0f64, 0.0f64);
        for (&a, &b) in given.iter().zip(&got) {
            let difference = f64::from(a) - f64::from(b);
            squares += difference * difference;
            signal += f64::from(a) * f64::from(a);
            max = max.max(difference.abs());
        }
        if decoded.is_err() {
            // What was just encoded can be decoded; a number that says otherwise would show it.
            squares = f64::NAN;
        }
        let mut sums = sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *sums = (sums.0 + squares, sums.1 + signal, sums.2.max(max));
    });
    let (squares, signal, max) = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let count = total.max(1) as f64;
    Loss { rmse: (squares / count).sqrt(), max, rms: (signal / count).sqrt() }
}
