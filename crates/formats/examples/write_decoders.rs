//! Writes a model that holds each format's declaration, random records of it and what the native codec makes of them,
//! and the contract's examples with values worked out by hand: `tests/python/test_decoders.py` runs the in-file
//! decoders with the `onnx` reference and compares.
//!
//!     cargo run -p heirloom-formats --example write_decoders -- OUT.onnx
#![allow(clippy::disallowed_methods)]

#[allow(dead_code)]
#[path = "../tests/it/contract_types.rs"]
mod contract_types;

use std::path::Path;

use heirloom_formats::{FAMILIES, FORMATS};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::{EncodedValueProto, GraphProto, ModelProto, OperatorSetIdProto, SaveOptions};
use heirloom_types::{Codec, StructType, TensorSpec, ValueType, tensor_to_proto};

/// The initializer with the natively decoded values of encoded initializer `x` is named `x.decoded`.
const DECODED: &str = ".decoded";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: write_decoders OUT.onnx")?;
    let mut model = ModelProto::new();
    model.set_ir_version(14);
    let mut import = OperatorSetIdProto::new();
    import.set_version(24);
    model.opset_import_mut().push(import);
    let mut graph = GraphProto::new();
    graph.set_name("decoders");
    let mut seed = 1;
    for format in FORMATS {
        model.struct_types_mut().push(format.declaration().to_proto());
        add(&mut graph, format.name, format.declaration(), *format, 40, &mut seed)?;
        add(&mut graph, &format!("{}_empty", format.name), format.declaration(), *format, 0, &mut seed)?;
    }
    for family in FAMILIES {
        for (i, shaped) in (family.examples)().into_iter().enumerate() {
            let name = format!("{}_{i}", family.name);
            add(&mut graph, &name, &shaped.declaration(None), &*shaped, 3, &mut seed)?;
        }
    }
    for (ty, records, values) in contract_types::examples() {
        model.struct_types_mut().push(ty.to_proto());
        let shape = [records.len() / ty.record_bytes()?, values.len() * ty.record_bytes()? / records.len()];
        push(&mut graph, ty.name(), &ty, records, &shape, values)?;
    }
    model.struct_types_mut().push(contract_types::codebook2().to_proto());
    model.set_graph(graph);
    heirloom_proto::save(&model, Path::new(&path), &SaveOptions::default())?;
    Ok(())
}

fn add(
    graph: &mut GraphProto,
    name: &str,
    declaration: &StructType,
    codec: &dyn Codec,
    count: usize,
    seed: &mut u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut records = random_bytes(count * codec.record_bytes(), seed);
    let shape = [count, codec.elements()];
    let mut values = vec![0f32; count * codec.elements()];
    if codec.decode(&records, &mut values).is_err() {
        // Random indices lie beyond a table that has fewer entries than they can name: take those of some values.
        let bytes = random_bytes(values.len(), seed);
        let inputs: Vec<f32> = bytes.into_iter().map(|byte| f32::from(byte) / 100.0 - 1.0).collect();
        codec.encode(&inputs, &mut records)?;
        codec.decode(&records, &mut values)?;
    }
    push(graph, name, declaration, records, &shape, values)
}

fn push(
    graph: &mut GraphProto,
    name: &str,
    declaration: &StructType,
    records: Vec<u8>,
    shape: &[usize],
    values: Vec<f32>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut encoded = EncodedValueProto::new();
    encoded.set_name(name);
    encoded.set_struct_type(declaration.to_reference());
    encoded.set_logical_type(ValueType::Tensor(TensorSpec::concrete(DType::Float, shape)).to_proto());
    encoded.set_raw_data(Bytes::from_vec(records));
    graph.encoded_initializer_mut().push(encoded);
    let decoded = Tensor::from_vec(shape, values)?;
    graph.initializer_mut().push(tensor_to_proto(&decoded, &format!("{name}{DECODED}"))?);
    Ok(())
}

/// Bytes of a linear congruential generator (Knuth's MMIX constants).
fn random_bytes(count: usize, seed: &mut u64) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}
