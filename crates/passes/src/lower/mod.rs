//! Export to standard ONNX: nothing is dropped in silence. What ONNX has no words for is either refused by name, or said
//! in standard operators so that another runtime computes the same.

mod decoder;
mod losses;
mod weights;

use heirloom_graph::Model;
use heirloom_proto::{GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto};
use rustc_hash::FxHashSet;

pub use losses::{Loss, LossKind, losses};

use crate::Evaluate;
use weights::Lowering;

/// The annotation that lists a lowered model's pairs of inputs and outputs, as JSON: `[{"input": …, "output": …}]`.
pub const BINDINGS_KEY: &str = "heirloom.bindings";

/// What encoded values become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weights {
    /// Affine codes become `DequantizeLinear`, records the decoder of their type over their fields; dense tensors what can
    /// be neither.
    #[default]
    Nodes,
    /// All become dense tensors.
    Dense,
}

/// A model in standard ONNX.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lowered {
    /// The model. Payloads are shared with the original's where they stay as they are.
    pub model: Model,
    /// Input and output of each binding that was: a caller feeds the output's value to the input of the next call.
    pub pairs: Vec<(String, String)>,
    /// Each encoded value, and what it became.
    pub weights: Vec<(String, &'static str)>,
}

/// Why a model cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// Standard ONNX has no words for these, and lowering was not asked for or cannot say them either.
    #[error("standard ONNX cannot hold {}", list(.0))]
    Losses(Vec<Loss>),
    /// An encoded value cannot be said in standard operators, nor decoded.
    #[error("`{value}` cannot be lowered: {reason}")]
    Value {
        /// The value.
        value: String,
        /// Why.
        reason: String,
    },
    /// What came out is refused: a fault of the lowering.
    #[error(transparent)]
    Model(#[from] heirloom_graph::Error),
}

fn list(losses: &[Loss]) -> String {
    const SHOWN: usize = 8;
    let mut text = losses.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if losses.len() > SHOWN {
        text += &format!(" and {} more", losses.len() - SHOWN);
    }
    text
}

/// The model as standard ONNX, which it must be already: byte for byte as it was.
///
/// # Errors
/// With all that would be lost, by name.
pub fn check_standard(model: &Model) -> Result<(), LowerError> {
    match losses(model) {
        losses if losses.is_empty() => Ok(()),
        losses => Err(LowerError::Losses(losses)),
    }
}

/// The model in standard ONNX: encoded values as operators or dense tensors, bindings as a list for callers.
///
/// # Errors
/// When something of it cannot be said: struct-typed values that a call takes, gives or passes on, and our own operators
/// on them; a constant that a feed may override; an encoded value that is no tensor.
pub fn lower(model: &Model, weights: Weights, evaluate: &dyn Evaluate) -> Result<Lowered, LowerError> {
    let stay: Vec<Loss> = losses(model).into_iter().filter(|loss| !loss.can_be_lowered()).collect();
    if !stay.is_empty() {
        return Err(LowerError::Losses(stay));
    }
    let graph = model.graph();
    let name = |value| String::from(graph.value_name(value));
    let pairs: Vec<_> = graph.bindings().iter().map(|it| (name(it.input), name(it.output))).collect();
    let mut proto = model.proto().clone();
    let mut lowering = Lowering::new(model, weights, evaluate);
    if proto.has_graph() {
        lowering.graph(graph, proto.graph_mut())?;
    }
    let (changed, functions) = lowering.finish();
    if !functions.is_empty() {
        let mut import = OperatorSetIdProto::new();
        import.set_domain(decoder::DOMAIN);
        import.set_version(1);
        proto.opset_import_mut().push(import);
        proto.functions_mut().extend(functions);
    }
    if !pairs.is_empty() {
        proto.graph_mut().persistent_bindings_mut().clear();
        annotate(&mut proto, &pairs);
    }
    if !proto.struct_types().is_empty() {
        proto.struct_types_mut().clear();
    }
    drop_unused_domain(&mut proto);
    let model = model.with_proto(proto)?;
    check_standard(&model)?;
    Ok(Lowered { model, pairs, weights: changed })
}

fn annotate(proto: &mut ModelProto, pairs: &[(String, String)]) {
    let objects: Vec<_> =
        pairs.iter().map(|(input, output)| serde_json::json!({ "input": input, "output": output })).collect();
    let mut entry = StringStringEntryProto::new();
    entry.set_key(BINDINGS_KEY);
    entry.set_value(&serde_json::Value::Array(objects).to_string());
    proto.metadata_props_mut().push(entry);
}

/// Our domain is imported for nodes that are no more.
fn drop_unused_domain(proto: &mut ModelProto) {
    let mut used = FxHashSet::default();
    fn domains<'a>(graph: &'a GraphProto, used: &mut FxHashSet<&'a str>) {
        for node in graph.node() {
            used.insert(node.domain());
            node.attribute()
                .iter()
                .flat_map(|it| it.g().into_iter().chain(it.graphs()))
                .for_each(|it| domains(it, used));
        }
    }
    proto.graph().into_iter().for_each(|graph| domains(graph, &mut used));
    if !used.contains("ai.heirloom")
        && let Some(at) = proto.opset_import().iter().position(|it| it.domain() == "ai.heirloom")
    {
        proto.opset_import_mut().remove(at);
    }
}
