//! What holds for every kernel of the table.

use std::sync::Arc;

use heirloom_graph::{AttrValue, Attributes, Node, ValueId};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, InputFacts};
use heirloom_types::{EncodedValue, Layout, StructLayout, StructType, TensorType, Value};

fn node(op: &str, domain: &str, attributes: Attributes) -> Node {
    Node {
        name: String::new(),
        op_type: op.into(),
        domain: domain.into(),
        overload: String::new(),
        inputs: (0..3).map(|at| Some(ValueId(at))).collect(),
        outputs: vec![Some(ValueId(3))],
        attributes,
    }
}

fn facts(constants: [Option<Value>; 3]) -> Vec<Option<InputFacts>> {
    let fact = |(at, constant): (usize, Option<Value>)| {
        Some(InputFacts { name: format!("input {at}"), constant, ..InputFacts::default() })
    };
    constants.into_iter().enumerate().map(fact).collect()
}

/// A value whose layout nobody knows.
fn mystery() -> Value {
    let record =
        StructType::structure("mystery").field("code", DType::Uint8).type_id(990_001).build().unwrap();
    Value::Encoded(Arc::new(EncodedValue {
        name: "w".into(),
        layout: Layout::Struct(Arc::new(StructLayout::new(record).unwrap())),
        logical: Some(TensorType { dtype: DType::Float, shape: smallvec::smallvec![2, 2] }),
        payload: Bytes::from_vec(vec![1u8, 2, 3, 4]),
    }))
}

// proves: E6
#[test]
fn no_kernel_takes_a_layout_that_it_does_not_know() {
    let takes: Vec<_> = heirloom_ops::KERNELS
        .iter()
        .filter(|spec| {
            (0..3).any(|at| {
                let mut constants = [None, None, None];
                constants[at] = Some(mystery());
                let (node, inputs) = (node(spec.op, spec.domain, Attributes::default()), facts(constants));
                (spec.accepts)(&BuildCx { node: &node, opset: spec.versions.1.min(28), inputs: &inputs })
            })
        })
        .map(|spec| spec.op)
        .collect();
    // These two read no bytes: the value as it is, and its logical shape.
    assert_eq!(takes, ["Identity", "Shape"]);
}

#[test]
fn no_attribute_is_ignored() {
    for spec in heirloom_ops::KERNELS.iter().filter(|spec| spec.domain.is_empty()) {
        let attributes: Attributes = [("made_up".to_string(), AttrValue::Int(1))].into_iter().collect();
        let (node, inputs) = (node(spec.op, spec.domain, attributes), facts([None, None, None]));
        let cx = BuildCx { node: &node, opset: spec.versions.1.min(28), inputs: &inputs };
        if !(spec.accepts)(&cx) {
            continue;
        }
        match (spec.build)(&cx) {
            Err(BuildError::Unsupported { name, .. }) => assert_eq!(name, "made_up", "{}", spec.op),
            Err(error) => panic!("{}: {error}", spec.op),
            Ok(_) => panic!("{} ignores an attribute", spec.op),
        }
    }
}

#[test]
fn the_table_is_sorted_and_names_each_operator_once() {
    let mut names: Vec<_> =
        heirloom_ops::KERNELS.iter().map(|spec| (spec.domain, spec.op, spec.rank)).collect();
    assert!(heirloom_ops::KERNELS.len() > 30);
    names.sort_unstable();
    let before = names.len();
    names.dedup();
    // Gather, Gemm and MatMul have a second kernel of the same rank for encoded constants.
    assert_eq!(before - names.len(), 3);
}

#[test]
fn wrong_inputs_are_errors_that_say_what_is_wrong() {
    use heirloom_runtime::{NodeCall, NodeInput};
    let run = |op: &str, inputs: Vec<Tensor>| {
        let fed = inputs.iter().map(|_| NodeInput::Fed).collect();
        let mut call = NodeCall::new(&crate::registry(), op, 24, Attributes::default(), fed, 1).unwrap();
        call.run(inputs).unwrap_err().to_string()
    };
    let f = |shape: &[usize]| Tensor::from_vec(shape, vec![1.0f32; shape.iter().product()]).unwrap();
    let i = |values: &[i64]| Tensor::from_vec(&[values.len()], values.to_vec()).unwrap();
    assert_eq!(run("Add", vec![f(&[2]), f(&[3])]), "shapes cannot be broadcast together: [[2], [3]]");
    assert_eq!(
        run("Add", vec![f(&[2]), i(&[1, 2])]),
        "input 1 is a INT64 tensor, where the operator takes FLOAT tensor, as input 0 is"
    );
    assert_eq!(run("Gather", vec![f(&[2]), i(&[2])]), "an index: 2 lies outside -2..=1");
    assert_eq!(run("Div", vec![i(&[1]), i(&[0])]), "an integer is divided by zero");
    assert_eq!(
        run("Reshape", vec![f(&[6]), i(&[4, -1])]),
        "the elements do not fill the shape that is asked for: [[6], [4, 18446744073709551615]]"
    );
    assert!(run("Expand", vec![f(&[1]), i(&[1 << 40, 1 << 40])]).contains("too large"));
    assert!(run("MatMul", vec![f(&[2, 3]), f(&[2, 3])]).contains("[[2, 3], [2, 3]]"));
}

#[test]
fn softmax_before_version_13_sees_a_matrix() {
    use heirloom_runtime::{NodeCall, NodeInput};
    let attributes: Attributes = [("axis".to_string(), AttrValue::Int(1))].into_iter().collect();
    let mut call =
        NodeCall::new(&crate::registry(), "Softmax", 11, attributes, vec![NodeInput::Fed], 1).unwrap();
    let out = call.run([Tensor::from_vec(&[1, 2, 2], vec![0.0f32; 4]).unwrap()]).unwrap();
    assert_eq!(out[0].as_tensor().unwrap().as_slice::<f32>().unwrap(), [0.25; 4]);
}
