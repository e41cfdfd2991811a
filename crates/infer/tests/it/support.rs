//! Models in a few lines.

use heirloom_graph::{Model, ModelBuilder, OpenOptions};
use heirloom_infer::{InferOptions, ShapesContext};
use heirloom_mem::DType;
use heirloom_types::{Dim, ValueType};

pub(crate) fn float(dims: &[&str]) -> ValueType {
    let dim = |dim: &&str| dim.parse().map_or_else(|_| Dim::from(*dim), Dim::Known);
    ValueType::symbolic(DType::Float, dims.iter().map(dim))
}

pub(crate) fn builder() -> ModelBuilder {
    let mut model = ModelBuilder::new("test");
    model.opset("", 24).unwrap();
    model
}

pub(crate) fn open(model: ModelBuilder) -> Model {
    Model::from_proto(model.finish().unwrap(), None, &OpenOptions::default()).unwrap()
}

pub(crate) fn infer(model: &Model) -> ShapesContext {
    ShapesContext::infer(model, &InferOptions::default())
}

/// What is inferred of a value of the main graph.
pub(crate) fn shown(model: &Model, value: &str) -> String {
    let context = infer(model);
    let value = model.graph().value(value).unwrap();
    context.main().fact(value).ty.as_ref().map_or_else(|| "?".into(), ToString::to_string)
}
