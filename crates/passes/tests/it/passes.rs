//! Passes keep what callers see.

use heirloom_graph::Model;
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_passes::pass::{PASSES, optimize};
use heirloom_types::{Affine, TensorType};

use crate::support::{builder, float, open};

fn run(model: Model) -> Model {
    let (model, _) = optimize(model, PASSES, None).unwrap();
    let bytes = model.proto().to_bytes();
    let (again, reports) = optimize(model, PASSES, None).unwrap();
    assert_eq!(reports, [], "a second run finds nothing");
    assert_eq!(again.proto().to_bytes(), bytes);
    again
}

fn operators(model: &Model) -> Vec<&str> {
    model.graph().nodes().iter().map(|node| &*node.op_type).collect()
}

// proves: GB5
#[test]
fn identities_go_and_bound_outputs_keep_their_names() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["2"])).unwrap();
    let s = g.input("s", &float(&["2"])).unwrap();
    let passed = g.node("Identity").input(&x).output("passed").unwrap();
    let y = g.node("Add").input(&passed).input(&s).output("y").unwrap();
    let next = g.node("Identity").input(&y).output("next").unwrap();
    let z = g.node("Neg").input(&y).output("z").unwrap();
    g.output(&next, &float(&["2"])).unwrap();
    g.output(&z, &float(&["2"])).unwrap();
    g.bind(&s, &next).unwrap();
    let model = run(open(model));
    assert_eq!(operators(&model), ["Add", "Neg"]);
    let graph = model.graph();
    assert_eq!(graph.value_name(graph.bindings()[0].output), "next");
    assert_eq!(graph.nodes()[1].inputs[0], graph.value("next"));
}

// proves: GB4
#[test]
fn equal_payloads_of_other_parameters_are_no_duplicates() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n", "2"])).unwrap();
    let logical = TensorType { dtype: DType::Float, shape: [2usize, 2].into_iter().collect() };
    let affine = |scale: f32| Affine {
        storage: DType::Int8,
        scale: Tensor::scalar(scale),
        zero_point: None,
        axis: None,
        block_size: None,
    };
    let mut sum = x.clone();
    for (name, scale) in [("a", 0.5), ("b", 0.5), ("c", 0.25)] {
        let w = g.affine(name, &affine(scale), &logical, Bytes::from_vec(vec![1u8, 2, 3, 4])).unwrap();
        sum = g.node("MatMul").input(&sum).input(&w).fresh("product").unwrap();
    }
    g.output(&sum, &float(&["n", "2"])).unwrap();
    let model = run(open(model));
    let kept: Vec<_> =
        model.graph().initializers().map(|(value, _)| model.graph().value_name(value)).collect();
    assert_eq!(kept, ["a", "c"]);
    assert_eq!(operators(&model).len(), 3);
}

#[test]
fn shapes_fold_equal_nodes_merge_and_what_nobody_reads_goes() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["2", "6"])).unwrap();
    let like = g.input("like", &float(&["3", "4"])).unwrap();
    let shape = g.node("Shape").input(&like).output("shape").unwrap();
    let a = g.node("Exp").input(&x).output("a").unwrap();
    let b = g.node("Exp").input(&x).output("b").unwrap();
    let sum = g.node("Add").input(&a).input(&b).output("sum").unwrap();
    let y = g.node("Reshape").input(&sum).input(&shape).output("y").unwrap();
    g.node("Log").input(&x).output("unread").unwrap();
    g.output(&y, &float(&["3", "4"])).unwrap();
    let model = run(open(model));
    assert_eq!(operators(&model), ["Exp", "Add", "Reshape"]);
    let shape = model.graph().initializer(model.graph().value("shape").unwrap()).unwrap().value().unwrap();
    assert_eq!(shape.as_tensor().unwrap().as_slice::<i64>().unwrap(), [3, 4]);
}

// proves: GB1
#[test]
fn a_model_in_which_nothing_is_found_is_the_same_to_the_byte() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n"])).unwrap();
    let y = g.node("Neg").input(&x).output("y").unwrap();
    g.output(&y, &float(&["n"])).unwrap();
    let model = open(model);
    let before = model.proto().to_bytes();
    let (after, reports) = optimize(model, PASSES, None).unwrap();
    assert!(reports.is_empty());
    assert_eq!(after.proto().to_bytes(), before);
}
