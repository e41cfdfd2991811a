//! Models that several tests use.

use std::path::PathBuf;
use std::sync::Arc;

use heirloom_graph::{Error, Faults, Model, ModelBuilder, OpenOptions};
use heirloom_mem::DType;
use heirloom_proto::ModelProto;
use heirloom_types::{Dim, StructType, ValueType};

/// The Python interpreter that `HEIRLOOM_PYTHON` names, or the one in the repository's `.venv`.
pub(crate) fn python() -> PathBuf {
    match std::env::var_os("HEIRLOOM_PYTHON") {
        Some(path) => path.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

pub(crate) fn vector(n: usize) -> ValueType {
    ValueType::tensor(DType::Float, &[n])
}

pub(crate) fn dynamic(dims: &[&str]) -> ValueType {
    ValueType::symbolic(DType::Float, dims.iter().map(|&dim| Dim::from(dim)))
}

/// `y = x + s`, kept as the next `s`; both FLOAT[2].
pub(crate) fn accumulator() -> ModelBuilder {
    let mut model = ModelBuilder::new("accumulate");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &vector(2)).unwrap();
    let s = g.input("s", &vector(2)).unwrap();
    let y = g.node("Add").input(&x).input(&s).output("y").unwrap();
    let next = g.node("Identity").input(&y).output("stateN").unwrap();
    g.output(&y, &vector(2)).unwrap();
    g.output(&next, &vector(2)).unwrap();
    g.bind(&s, &next).unwrap();
    model
}

/// 18 bytes for 32 elements: a FLOAT16 scale and 32 codes of 4 bits.
pub(crate) fn block() -> Arc<StructType> {
    StructType::structure("Block")
        .field("scale", DType::Float16)
        .array("codes", DType::Uint4, 32)
        .type_id(2001)
        .build()
        .unwrap()
}

pub(crate) fn open(proto: ModelProto) -> Result<Model, Error> {
    Model::from_proto(proto, None, &OpenOptions::default())
}

/// The faults that forbid to open a model.
pub(crate) fn faults(proto: ModelProto) -> Faults {
    match open(proto) {
        Err(Error::Invalid { faults, .. }) => faults,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("the model was opened"),
    }
}

/// Bytes of anonymous memory that the process has in use.
pub(crate) fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
