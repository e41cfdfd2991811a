//! Models in a few lines.

use heirloom_graph::{Model, ModelBuilder, OpenOptions};
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
