//! Products and look-ups from encoded constants equal those from the decoded tensors.

use std::sync::Arc;

use heirloom_formats::FORMATS;
use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_runtime::{NodeCall, NodeInput};
use heirloom_types::{Affine, Codec, EncodedValue, Layout, StructLayout, TensorType, Value};

use crate::registry;
use crate::values::numbers;

fn wave(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|at| (at as f32 * step).sin() * 2.0).collect()
}

fn logical(shape: &[usize]) -> TensorType {
    TensorType { dtype: DType::Float, shape: shape.iter().copied().collect() }
}

/// A [rows, columns] value in each format, and two affine ones.
fn values(rows: usize, columns: usize) -> Vec<(String, Value)> {
    let mut list = Vec::new();
    for format in FORMATS {
        let mut records = vec![0; rows * columns / format.elements * format.record_bytes];
        if format.encode(&wave(rows * columns, 0.37), &mut records).is_err() {
            continue;
        }
        let layout = StructLayout::new(format.declaration().clone()).unwrap();
        let value = EncodedValue {
            name: "w".into(),
            layout: Layout::Struct(Arc::new(layout)),
            logical: Some(logical(&[rows, columns])),
            payload: Bytes::from_vec(records),
        };
        list.push((format.name.to_string(), Value::Encoded(Arc::new(value))));
    }
    assert!(list.len() >= 15, "formats with an encoder: {}", list.len());
    let codes: Vec<u8> = (0..rows * columns).map(|at| (at * 31 % 251) as u8).collect();
    for (storage, axis, block, scales, bytes) in [
        (DType::Int8, Some(0), None, rows, rows * columns),
        (DType::Int4, Some(1), Some(32), rows * columns / 32, rows * columns / 2),
    ] {
        let shape: &[usize] = if block.is_some() { &[rows, columns / 32] } else { &[rows] };
        let affine = Affine {
            storage,
            scale: Tensor::from_vec(shape, wave(scales, 0.11)).unwrap(),
            zero_point: None,
            axis,
            block_size: block,
        };
        let value = EncodedValue {
            name: "w".into(),
            layout: Layout::Affine(Arc::new(affine)),
            logical: Some(logical(&[rows, columns])),
            payload: Bytes::from_vec(codes[..bytes].to_vec()),
        };
        list.push((format!("affine {storage}"), Value::Encoded(Arc::new(value))));
    }
    list
}

fn run(
    op: &str,
    version: i64,
    attributes: &[(&str, i64)],
    inputs: Vec<NodeInput>,
    feeds: Vec<Tensor>,
) -> Tensor {
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| (name.to_string(), AttrValue::Int(*value))).collect();
    let mut call = NodeCall::new(&registry(), op, version, attributes, inputs, 1).unwrap();
    call.run(feeds).unwrap()[0].as_tensor().unwrap().clone()
}

fn decoded(value: &Value) -> Tensor {
    run("ai.heirloom.Decode", 1, &[], vec![NodeInput::Constant(value.clone())], vec![])
}

fn assert_close(actual: &Tensor, expected: &Tensor, name: &str) {
    assert_eq!(actual.shape(), expected.shape(), "{name}");
    for (a, b) in numbers(actual).into_iter().zip(numbers(expected)) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{name}: {a} instead of {b}");
    }
}

#[test]
fn decoding_gives_the_codec_s_values() {
    for (name, value) in values(4, 256) {
        let Value::Encoded(encoded) = &value else { unreachable!() };
        let codec = encoded.layout.as_struct().and_then(|layout| heirloom_formats::codec(layout));
        let expected = encoded.decode(codec.as_deref(), &heirloom_mem::Ledger::default()).unwrap();
        assert_eq!(numbers(&decoded(&value)), numbers(&expected), "{name}");
    }
}

// proves: D4
#[test]
fn every_format_serves_as_a_weight() {
    let x = Tensor::from_vec(&[3, 256], wave(3 * 256, 0.05)).unwrap();
    let left = Tensor::from_vec(&[2, 3, 4], wave(24, 0.3)).unwrap();
    for (name, value) in values(4, 256) {
        let dense = NodeInput::Constant(decoded(&value).into());
        let encoded = NodeInput::Constant(value.clone());
        let gemm = |weight: &NodeInput| {
            run("Gemm", 13, &[("transB", 1)], vec![NodeInput::Fed, weight.clone()], vec![x.clone()])
        };
        assert_close(&gemm(&encoded), &gemm(&dense), &name);
        let product = |weight: &NodeInput| {
            run("MatMul", 13, &[], vec![NodeInput::Fed, weight.clone()], vec![left.clone()])
        };
        assert_close(&product(&encoded), &product(&dense), &name);
        let ids = Tensor::from_vec(&[1, 3], vec![3i64, 0, -1]).unwrap();
        let rows = |table: &NodeInput| {
            run("Gather", 13, &[("axis", 0)], vec![table.clone(), NodeInput::Fed], vec![ids.clone()])
        };
        assert_eq!(numbers(&rows(&encoded)), numbers(&rows(&dense)), "{name}");
    }
}

#[test]
fn a_bias_is_added_to_an_encoded_product() {
    let (_, value) = values(4, 256).remove(0);
    let x = Tensor::from_vec(&[2, 256], wave(512, 0.05)).unwrap();
    let bias = Tensor::from_vec(&[4], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let with = |weight: Value| {
        let inputs = vec![NodeInput::Fed, NodeInput::Constant(weight), NodeInput::Fed];
        run("Gemm", 13, &[("transB", 1)], inputs, vec![x.clone(), bias.clone()])
    };
    assert_close(&with(value.clone()), &with(decoded(&value).into()), "bias");
}
