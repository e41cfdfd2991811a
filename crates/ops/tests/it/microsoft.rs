//! Operators of com.microsoft and ai.onnx.ml give what ONNX Runtime gives. The cases were recorded by `tests/oracle/microsoft.py`.

use std::collections::BTreeSet;

use heirloom_graph::Attributes;
use heirloom_mem::Tensor;
use heirloom_runtime::{KernelError, NodeCall, NodeCallError, NodeInput};
use heirloom_types::{MapKey, Value};
use serde_json::{Value as Json, json};

use crate::oracle::attribute;
use crate::registry;
use crate::values::{difference, difference_within, tensor};

const CASES: &str = include_str!("../oracle/microsoft.jsonl");

fn cases() -> impl Iterator<Item = (usize, Json)> {
    (1..).zip(CASES.lines().map(|line| serde_json::from_str(line).unwrap()))
}

fn call(case: &Json, constant: bool) -> Result<NodeCall, NodeCallError> {
    let attributes: Attributes = case["attributes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), attribute(value)))
        .collect();
    let input = |input: &Json| match input {
        Json::Null => NodeInput::Absent,
        json if constant => NodeInput::Constant(tensor(json).into()),
        _ => NodeInput::Fed,
    };
    let inputs = case["inputs"].as_array().unwrap().iter().map(input).collect();
    let outputs = case["outputs"].as_array().unwrap().len().max(1);
    let version = case["version"].as_i64().unwrap();
    NodeCall::new(&registry(), case["op"].as_str().unwrap(), version, attributes, inputs, outputs)
}

fn feeds(case: &Json) -> Vec<Tensor> {
    case["inputs"].as_array().unwrap().iter().filter(|input| !input.is_null()).map(tensor).collect()
}

fn check(case: &Json, results: Result<Vec<Value>, KernelError>) -> Option<String> {
    let results = match results {
        Err(error) => return Some(error.to_string()),
        Ok(results) => results,
    };
    if case["maps"].is_array() {
        let actual = maps(&results[0]);
        return (actual != case["maps"]).then(|| format!("{actual}"));
    }
    let outputs = case["outputs"].as_array().unwrap().iter().map(tensor);
    results.iter().zip(outputs).enumerate().find_map(|(at, (actual, expected))| {
        let actual = actual.as_tensor().unwrap();
        let differs = match case["close"].as_f64() {
            Some(bound) => difference_within(actual, &expected, (bound, bound)),
            None => difference(actual, &expected, false),
        };
        differs.map(|difference| format!("output {at}: {difference}"))
    })
}

/// A sequence of maps as lists of pairs.
fn maps(value: &Value) -> Json {
    let Value::Sequence(rows) = value else { panic!("{value:?}") };
    let pair = |(key, value): &(MapKey, Value)| {
        let number = value.as_tensor().unwrap().as_slice::<f32>().unwrap()[0];
        match key {
            MapKey::Int(key) => json!([key, f64::from(number)]),
            MapKey::String(key) => json!([key, f64::from(number)]),
        }
    };
    let row = |row: &Value| match row {
        Value::Map(pairs) => pairs.iter().map(pair).collect::<Json>(),
        other => panic!("{other:?}"),
    };
    rows.iter().map(row).collect()
}

#[test]
fn operators_of_other_domains_give_what_onnx_runtime_gives() {
    let mut faults = Vec::new();
    for (line, case) in cases() {
        let place = format!("line {line} ({} {})", case["op"], case["attributes"]);
        for constant in [false, true] {
            let fed = if constant { Vec::new() } else { feeds(&case) };
            let fault = match call(&case, constant) {
                Ok(mut call) => check(&case, call.run(fed).map(|results| results.into_iter().collect())),
                Err(error) => Some(error.to_string()),
            };
            faults.extend(fault.map(|fault| format!("{place}, constant {constant}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

/// Operators whose cases stand elsewhere: in `group_query.rs`, the standard's suite, the 41 real models.
const ELSEWHERE: &[&str] = &[
    "ArrayFeatureExtractor",
    "Binarizer",
    "DequantizeLinear",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeMatMul",
    "FusedConv",
    "FusedMatMul",
    "GroupQueryAttention",
    "LabelEncoder",
    "MatMulIntegerToFloat",
    "QLinearAdd",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
];

#[test]
fn every_operator_of_other_domains_has_recorded_cases() {
    let recorded: BTreeSet<String> = cases().map(|(_, case)| case["op"].as_str().unwrap().into()).collect();
    let missing: BTreeSet<_> = heirloom_ops::KERNELS
        .iter()
        .filter(|spec| matches!(spec.domain, "com.microsoft" | "ai.onnx.ml") && !ELSEWHERE.contains(&spec.op))
        .map(|spec| format!("{}.{}", spec.domain, spec.op))
        .filter(|op| !recorded.contains(op))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn permuted_blocks_with_zero_points_are_refused_when_the_node_is_built() {
    let (_, mut case) =
        cases().find(|(_, case)| case["inputs"].get(4).is_some_and(|it| !it.is_null())).unwrap();
    let error = |case: &Json| call(case, false).err().map(|error| error.to_string());
    assert_eq!(error(&case), None);
    case["inputs"][3] = case["inputs"][2].clone();
    assert!(error(&case).unwrap().contains("`g_idx`"), "{:?}", error(&case));
}
