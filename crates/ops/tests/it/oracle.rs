//! Every kernel gives what onnx.reference gives. The cases were recorded by `tests/oracle/record.py`.

use std::collections::BTreeSet;

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::Tensor;
use heirloom_runtime::{NodeCall, NodeInput};
use heirloom_types::Value;
use serde_json::Value as Json;

use crate::registry;
use crate::values::{difference, misaligned, payload, tensor};

const CASES: &str = include_str!("../oracle/cases.jsonl");

/// Operators whose results are the bits of the inputs, integers, or rounded once.
const EXACT: &[&str] = &[
    "Add",
    "Cast",
    "Concat",
    "ConstantOfShape",
    "Div",
    "Equal",
    "Expand",
    "Gather",
    "GatherND",
    "IsNaN",
    "Mod",
    "Identity",
    "Mul",
    "Neg",
    "Reshape",
    "Shape",
    "Slice",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Transpose",
    "Unsqueeze",
    "Where",
];

struct Case {
    op: String,
    version: i64,
    attributes: Attributes,
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    line: usize,
}

pub(crate) fn attribute(json: &Json) -> AttrValue {
    match json {
        Json::Number(number) if number.is_i64() => AttrValue::Int(number.as_i64().unwrap()),
        Json::Number(number) => AttrValue::Float(number.as_f64().unwrap() as f32),
        Json::Array(list) if list.iter().any(Json::is_f64) => {
            AttrValue::Floats(list.iter().map(|v| v.as_f64().unwrap() as f32).collect())
        }
        Json::Array(list) if list.iter().any(Json::is_string) => {
            AttrValue::Strings(list.iter().map(|v| v.as_str().unwrap().as_bytes().into()).collect())
        }
        Json::Array(list) => AttrValue::Ints(list.iter().map(|v| v.as_i64().unwrap()).collect()),
        Json::String(text) => AttrValue::String(text.as_bytes().into()),
        json => AttrValue::Tensor(tensor(&json["tensor"])),
    }
}

fn cases() -> Vec<Case> {
    let case = |(line, text): (usize, &str)| {
        let json: Json = serde_json::from_str(text).unwrap();
        let attributes = json["attributes"].as_object().unwrap().iter();
        let inputs = json["inputs"].as_array().unwrap().iter();
        Case {
            op: json["op"].as_str().unwrap().into(),
            version: json["version"].as_i64().unwrap(),
            attributes: attributes.map(|(name, value)| (name.clone(), attribute(value))).collect(),
            inputs: inputs.map(|input| (!input.is_null()).then(|| tensor(input))).collect(),
            outputs: json["outputs"].as_array().unwrap().iter().map(tensor).collect(),
            line: line + 1,
        }
    };
    CASES.lines().enumerate().map(case).collect()
}

impl Case {
    fn call(&self, constant: bool) -> NodeCall {
        let input = |input: &Option<Tensor>| match input {
            None => NodeInput::Absent,
            Some(tensor) if constant => NodeInput::Constant(tensor.clone().into()),
            Some(_) => NodeInput::Fed,
        };
        let inputs = self.inputs.iter().map(input).collect();
        let attributes = self.attributes.clone();
        NodeCall::new(&registry(), &self.op, self.version, attributes, inputs, self.outputs.len())
            .unwrap_or_else(|error| panic!("line {} ({}): {error}", self.line, self.op))
    }

    fn check(
        &self,
        how: &str,
        results: Result<Vec<Value>, heirloom_runtime::KernelError>,
        faults: &mut Vec<String>,
    ) {
        let place = format!("line {} ({}), {how}", self.line, self.op);
        match results {
            Err(error) => faults.push(format!("{place}: {error}")),
            Ok(results) => {
                for (at, (actual, expected)) in results.iter().zip(&self.outputs).enumerate() {
                    let exact = EXACT.contains(&&*self.op);
                    if let Some(difference) = difference(actual.as_tensor().unwrap(), expected, exact) {
                        faults.push(format!("{place}, output {at}: {difference}"));
                    }
                }
            }
        }
    }
}

#[test]
fn kernels_agree_with_the_reference_and_leave_what_others_hold() {
    let mut faults = Vec::new();
    for case in cases() {
        let fed = || case.inputs.iter().flatten().cloned();
        let before: Vec<_> = fed().map(|tensor| payload(&tensor)).collect();
        case.check("inputs held by the caller", case.call(false).run(fed()), &mut faults);
        for (tensor, before) in fed().zip(&before) {
            assert_eq!(&payload(&tensor), before, "line {}: an input was written over", case.line);
        }
        case.check("constant inputs", case.call(true).run(std::iter::empty::<Value>()), &mut faults);
        let shifted: Vec<_> = fed().map(|tensor| misaligned(&tensor)).collect();
        case.check("misaligned inputs", case.call(false).run(shifted), &mut faults);
        let mut call = case.call(false);
        case.check("first of two runs", call.run(fed()), &mut faults);
        case.check("second of two runs", call.run(fed()), &mut faults);
        // Last, because a kernel may write into buffers that nobody else holds.
        let mut call = case.call(false);
        let Case { inputs, .. } = &case;
        let owned: Vec<_> = inputs.iter().flatten().map(tensor_copy).collect();
        case.check("inputs moved in", call.run(owned), &mut faults);
    }
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

/// A tensor of its own with the same elements.
fn tensor_copy(tensor: &Tensor) -> Tensor {
    let bytes = payload(tensor);
    let mut own = heirloom_mem::BytesMut::zeroed(bytes.len(), &heirloom_mem::Ledger::default());
    own.as_mut_slice().copy_from_slice(&bytes);
    Tensor::new(tensor.dtype(), tensor.shape(), own.freeze()).unwrap()
}

/// Operators with tests of their own: `random.rs`, `pools.rs`, `microsoft.rs`.
const ELSEWHERE: &[&str] = &[
    "Bernoulli",
    "GlobalLpPool",
    "MaxRoiPool",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "SimplifiedLayerNormalization",
];

/// The operators of `docs/operators.md` that cases of the ONNX standard's suite pass with, ai.onnx ones by name alone.
fn in_the_suite() -> BTreeSet<String> {
    let page = include_str!("../../../../docs/operators.md");
    let mut domain = "";
    let mut names = BTreeSet::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            domain = heading;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, name, _, cases, _] = cells[..]
            && cases.split_once(" of ").is_some_and(|(passed, _)| passed != "0")
        {
            let name = name.trim_matches('`');
            names.insert(if domain == "ai.onnx" { name.into() } else { format!("{domain}.{name}") });
        }
    }
    names
}

#[test]
fn every_kernel_has_recorded_cases_or_passes_with_some_of_the_suite() {
    let mut covered: BTreeSet<String> = cases().into_iter().map(|case| case.op).collect();
    covered.extend(in_the_suite());
    covered.extend(ELSEWHERE.iter().map(ToString::to_string));
    let missing: BTreeSet<_> = heirloom_ops::KERNELS
        .iter()
        .filter(|spec| spec.domain.is_empty() && !covered.contains(spec.op))
        .map(|spec| spec.op)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
