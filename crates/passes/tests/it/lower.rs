//! Export to standard ONNX.

use std::sync::Arc;

use heirloom_graph::{Model, Node};
use heirloom_mem::{Bytes, DType, Ledger, Tensor};
use heirloom_passes::Evaluate;
use heirloom_passes::lower::{BINDINGS_KEY, LowerError, Weights, check_standard, losses, lower};
use heirloom_types::{EncodedValue, StructType, TensorType, Value, ValueType};

use crate::support::{builder, float, open};

/// Decodes what needs no codec.
struct Plain;

impl Evaluate for Plain {
    fn node(&self, _: &Node, _: i64, _: &[Option<Value>]) -> Result<Vec<Value>, String> {
        Err("no kernels".into())
    }

    fn decode(&self, value: &Arc<EncodedValue>) -> Result<Tensor, String> {
        value.decode(None, &Ledger::default()).map_err(|error| error.to_string())
    }
}

/// `y = x · w`, with INT4 codes in blocks of two and a state that adds up.
fn quantized() -> Model {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n", "2"])).unwrap();
    let s = g.input("s", &float(&["n", "2"])).unwrap();
    let logical = TensorType { dtype: DType::Float, shape: [2usize, 2].into_iter().collect() };
    let affine = heirloom_types::Affine {
        storage: DType::Int8,
        scale: Tensor::from_vec(&[2], vec![0.5f32, 2.0]).unwrap(),
        zero_point: None,
        axis: Some(1),
        block_size: None,
    };
    let w = g.affine("w", &affine, &logical, Bytes::from_vec(vec![1u8, 2, 255, 4])).unwrap();
    let y = g.node("MatMul").input(&x).input(&w).output("y").unwrap();
    let next = g.node("Add").input(&y).input(&s).output("sN").unwrap();
    g.output(&next, &float(&["n", "2"])).unwrap();
    g.bind(&s, &next).unwrap();
    open(model)
}

// proves: GB7
#[test]
fn what_standard_onnx_cannot_hold_is_refused_by_name() {
    let model = quantized();
    let Err(LowerError::Losses(lost)) = check_standard(&model) else { panic!("not refused") };
    let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
    assert_eq!(lost, ["the persistent binding `s <- sN`", "the encoded initializer `w`"]);
}

// proves: GB7
#[test]
fn lowered_codes_are_dequantized_and_bindings_are_listed() {
    let model = quantized();
    let lowered = lower(&model, Weights::Nodes, &Plain).unwrap();
    assert_eq!(losses(&lowered.model), []);
    assert_eq!(lowered.pairs, [("s".into(), "sN".into())]);
    assert_eq!(lowered.weights, [("w".into(), "DequantizeLinear")]);
    assert_eq!(lowered.model.metadata_value(BINDINGS_KEY), Some(r#"[{"input":"s","output":"sN"}]"#));
    let graph = lowered.model.graph();
    assert_eq!(
        graph.nodes().iter().map(|it| &*it.op_type).collect::<Vec<_>>(),
        ["DequantizeLinear", "MatMul", "Add"]
    );
    assert!(graph.bindings().is_empty());
    // The codes are the very bytes that they were.
    let codes = graph.initializer(graph.value("w.codes").unwrap()).unwrap().value().unwrap();
    let heirloom_graph::Initializer::Encoded(old) =
        model.graph().initializer(model.graph().value("w").unwrap()).unwrap()
    else {
        panic!("not encoded")
    };
    assert_eq!(codes.as_tensor().unwrap().address(), old.payload.address());
}

// proves: GB7
#[test]
fn dense_weights_have_the_values_that_the_codes_stand_for() {
    let lowered = lower(&quantized(), Weights::Dense, &Plain).unwrap();
    let graph = lowered.model.graph();
    let w = graph.initializer(graph.value("w").unwrap()).unwrap().value().unwrap();
    assert_eq!(w.as_tensor().unwrap().as_slice::<f32>().unwrap(), [0.5, 4.0, -0.5, 8.0]);
}

// proves: GB7
#[test]
fn struct_typed_values_have_no_standard_form_and_are_named() {
    let cache = StructType::structure("Cache").typed("keys", float(&["n"])).type_id(9).build().unwrap();
    let mut model = builder();
    let g = model.graph();
    let cache = g.input("cache", &ValueType::Struct(cache)).unwrap();
    let same = g.node("Identity").input(&cache).output("same").unwrap();
    g.untyped_output(&same).ok();
    let x = g.input("x", &float(&["n"])).unwrap();
    let y = g.node("Neg").input(&x).output("y").unwrap();
    g.output(&y, &float(&["n"])).unwrap();
    let Err(LowerError::Losses(lost)) = lower(&open(model), Weights::Nodes, &Plain) else {
        panic!("not refused")
    };
    assert_eq!(lost[0].to_string(), "the struct-typed value `cache`");
}
