//! GroupQueryAttention gives what ONNX Runtime gives, and writes the new rows alone. The cases were recorded by
//! `tests/oracle/group_query_attention.py`.

use half::{bf16, f16};
use heirloom_graph::Attributes;
use heirloom_mem::{DType, Tensor, copy};
use heirloom_runtime::{NodeCall, NodeCallError, NodeInput};
use heirloom_types::Value;
use serde_json::Value as Json;

use crate::oracle::attribute;
use crate::registry;
use crate::values::tensor;

const CASES: &str = include_str!("../oracle/group_query_attention.jsonl");
const OP: &str = "com.microsoft.GroupQueryAttention";

fn numbers(value: &Value) -> Vec<f32> {
    let ledger = heirloom_mem::Ledger::default();
    let tensor = copy::to_dense(value.as_tensor().unwrap(), copy::Purpose::Kernel, &ledger);
    match tensor.dtype() {
        DType::Float => tensor.as_slice::<f32>().unwrap().to_vec(),
        DType::Float16 => tensor.as_slice::<f16>().unwrap().iter().map(|x| x.to_f32()).collect(),
        DType::BFloat16 => tensor.as_slice::<bf16>().unwrap().iter().map(|x| x.to_f32()).collect(),
        other => panic!("{other}"),
    }
}

fn cases() -> Vec<Json> {
    CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(case: &Json) -> Result<NodeCall, NodeCallError> {
    let attributes: Attributes = case["attributes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), attribute(value)))
        .collect();
    let inputs = case["inputs"].as_array().unwrap().iter();
    let inputs =
        inputs.map(|input| if input.is_null() { NodeInput::Absent } else { NodeInput::Fed }).collect();
    NodeCall::new(&registry(), OP, 1, attributes, inputs, 3)
}

fn feeds(case: &Json) -> Vec<Tensor> {
    case["inputs"].as_array().unwrap().iter().filter(|input| !input.is_null()).map(tensor).collect()
}

// proves: K1, K2
#[test]
fn results_and_caches_are_those_of_onnx_runtime() {
    let mut ragged = 0;
    for (line, case) in (1..).zip(cases()) {
        let mut call = call(&case).unwrap();
        let results = call.run(feeds(&case)).unwrap();
        let rows: Vec<Vec<usize>> = serde_json::from_value(case["rows"].clone()).unwrap();
        let half = results[0].as_tensor().unwrap().dtype() != DType::Float;
        let bound = if half { 4e-3 } else { 2e-5 };
        for (at, result) in results.iter().enumerate() {
            let expected = Value::from(tensor(&case["outputs"][at]));
            let shape = result.as_tensor().unwrap().shape().to_vec();
            assert_eq!(shape, expected.as_tensor().unwrap().shape(), "line {line}, output {at}");
            let (got, expected) = (numbers(result), numbers(&expected));
            // [batch, tokens, width] and [batch, heads, rows, size].
            let (outer, extent) = if at == 0 { (1, shape[1]) } else { (shape[1], shape[2]) };
            let row = shape.last().unwrap();
            for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
                let place = i / row % extent;
                let counts = &rows[i / row / extent / outer];
                let counts = place < counts[usize::from(at > 0)];
                assert!(
                    !counts || (g - e).abs() <= bound,
                    "line {line}, output {at}, element {i}: {g}, not {e}"
                );
            }
        }
        let counts = call.counts();
        let even = rows.windows(2).all(|pair| pair[0] == pair[1]);
        ragged += usize::from(!even);
        if even {
            let new: u64 = feeds(&case)[0].shape()[1] as u64;
            let cache = results[1].as_tensor().unwrap();
            let row = (cache.byte_len() / cache.shape()[2]) as u64;
            assert_eq!((counts.appended_bytes, counts.cache_copied_bytes), (2 * new * row, 0), "line {line}");
        }
    }
    assert_eq!(ragged, 4);
}

// proves: K1, Z4
#[test]
fn earlier_caches_stay_and_a_step_writes_its_own_rows() {
    for dtype in [DType::Float, DType::Float16, DType::BFloat16] {
        for shared in [false, true] {
            let attributes: Attributes = [("num_heads", 4), ("kv_num_heads", 2)]
                .map(|(n, v)| (n.to_string(), heirloom_graph::AttrValue::Int(v)))
                .into_iter()
                .collect();
            let mut call = NodeCall::new(&registry(), OP, 1, attributes, vec![NodeInput::Fed; 7], 3).unwrap();
            let real = |seed: usize, shape: &[usize]| {
                let n: usize = shape.iter().product();
                let value = |i: usize| ((i * 37 + seed * 11) % 23) as f32 / 8.0 - 1.4;
                match dtype {
                    DType::Float => Tensor::from_vec(shape, (0..n).map(value).collect::<Vec<f32>>()),
                    DType::Float16 => {
                        Tensor::from_vec(shape, (0..n).map(|i| f16::from_f32(value(i))).collect::<Vec<_>>())
                    }
                    _ => {
                        Tensor::from_vec(shape, (0..n).map(|i| bf16::from_f32(value(i))).collect::<Vec<_>>())
                    }
                }
                .unwrap()
            };
            let mut caches = [0, 1].map(|seed| real(seed, &[1, 2, if shared { 24 } else { 0 }, 8]));
            let mut held: Vec<(Tensor, Vec<f32>)> = Vec::new();
            let mut total = 0;
            for (at, tokens) in [5, 1, 1, 3, 1].into_iter().enumerate() {
                total += tokens;
                let before = call.counts();
                let results = call
                    .run([
                        real(at, &[1, tokens, 32]),
                        real(at + 5, &[1, tokens, 16]),
                        real(at + 9, &[1, tokens, 16]),
                        caches[0].clone(),
                        caches[1].clone(),
                        Tensor::from_vec(&[1], vec![total as i32 - 1]).unwrap(),
                        Tensor::from_vec(&[1], vec![total as i32]).unwrap(),
                    ])
                    .unwrap();
                caches = [1, 2].map(|at| results[at].as_tensor().unwrap().clone());
                assert_eq!(caches[0].shape(), [1, 2, if shared { 24 } else { total }, 8]);
                let done = call.counts() - before;
                assert_eq!(
                    done.appended_bytes,
                    (2 * 2 * tokens * caches[0].byte_len() / caches[0].len() * 8) as u64
                );
                assert_eq!(
                    (done.cache_copied_bytes, done.cache_allocations),
                    (0, if at == 0 { 2 } else { 0 })
                );
                held.push((caches[0].clone(), numbers(&caches[0].clone().into())));
                for (cache, before) in &held {
                    assert_eq!(&numbers(&cache.clone().into()), before);
                }
            }
        }
    }
}

#[test]
fn what_is_not_honoured_is_refused_by_name() {
    let base = &cases()[1];
    for (name, value) in [
        ("smooth_softmax", 1i64),
        ("qk_output", 1),
        ("sliding_window_cache", 1),
        ("local_window_size", 0),
        ("num_heads", 3),
    ] {
        let mut case = base.clone();
        case["attributes"][name] = value.into();
        let error = call(&case).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let mut case = base.clone();
    case["attributes"]["k_quant_type"] = "PER_TENSOR".into();
    assert!(call(&case).map(|_| ()).unwrap_err().to_string().contains("k_quant_type"));
    // Lengths that cannot be.
    let fed = feeds(base);
    for (at, value, message) in [
        (5, -2, "seqlens_k"),
        (5, 7, "seqlens_k"),
        (6, 9, "total_sequence_length"),
        (6, 0, "total_sequence_length"),
        (5, 0, "seqlens_k"),
    ] {
        let mut fed = fed.clone();
        fed[at] = Tensor::from_vec(&[1], vec![value]).unwrap();
        if (at, value) == (5, 0) {
            fed[6] = Tensor::from_vec(&[1], vec![6]).unwrap();
        }
        let result = call(base).unwrap().run(fed);
        match (at, value) {
            (5, 0) => assert!(result.is_ok(), "a shorter entry"),
            _ => assert!(result.unwrap_err().to_string().contains(message), "{at} {value}"),
        }
    }
}
