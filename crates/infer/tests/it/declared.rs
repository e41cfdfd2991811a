//! What a model declares, held against what follows.

use heirloom_infer::{ConflictKind, InferOptions, ShapesContext};
use heirloom_mem::Tensor;

use crate::support::{builder, float, infer, open, shown};

// proves: GB3
#[test]
fn a_wrong_declaration_is_named_beside_what_the_node_makes() {
    let mut model = builder();
    let g = model.graph();
    let past = g.input("past", &float(&["batch", "past"])).unwrap();
    let x = g.input("x", &float(&["batch", "1"])).unwrap();
    let y = g.node("Concat").input(&past).input(&x).attr("axis", 1).name("join").output("y").unwrap();
    g.output(&y, &float(&["batch", "past"])).unwrap();
    let model = open(model);
    let context = infer(&model);
    let [conflict] = context.conflicts() else { panic!("{:?}", context.conflicts()) };
    assert_eq!(
        conflict.to_string(),
        "`y` is declared FLOAT[batch, past], but node `join` (`Concat`) makes FLOAT[batch, past + 1]"
    );
}

// proves: GB3
#[test]
fn inputs_that_do_not_fit_are_both_named_with_their_types() {
    let mut model = builder();
    let g = model.graph();
    let a = g.input("a", &float(&["n", "3"])).unwrap();
    let b = g.input("b", &float(&["4", "5"])).unwrap();
    let y = g.node("MatMul").input(&a).input(&b).name("mul").output("y").unwrap();
    g.output(&y, &float(&["n", "5"])).unwrap();
    let model = open(model);
    let context = infer(&model);
    let [conflict] = context.conflicts() else { panic!("{:?}", context.conflicts()) };
    assert!(matches!(conflict.kind, ConflictKind::Inputs { .. }));
    assert_eq!(
        conflict.to_string(),
        "node `mul` (`MatMul`): the extents must be equal, but axis 1 of `a` (FLOAT[n, 3]) and axis 0 of `b` (FLOAT[4, 5]) differ"
    );
}

#[test]
fn a_declaration_fills_in_what_nothing_else_tells_unless_it_is_left_aside() {
    let mut model = builder();
    model.opset("custom", 1).unwrap();
    let g = model.graph();
    let x = g.input("x", &float(&["n"])).unwrap();
    let y = g.node("Mystery").domain("custom").input(&x).output("y").unwrap();
    let z = g.node("Relu").input(&y).output("z").unwrap();
    g.value_type("y", &float(&["n", "7"])).unwrap();
    g.output(&z, &float(&["n", "7"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "z"), "FLOAT[n, 7]");
    let context = ShapesContext::infer(&model, &InferOptions::default().ignore_declared(true));
    assert!(context.main().fact(model.graph().value("z").unwrap()).ty.is_none());
    assert_eq!(context.unknown_operators().collect::<Vec<_>>(), [("custom", "Mystery", 1)]);
}

#[test]
fn what_follows_from_inputs_outlives_a_declaration_of_one_export() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["N", "2"])).unwrap();
    let one = g.initializer("one", &Tensor::scalar(1f32)).unwrap();
    let y = g.node("Add").input(&x).input(&one).output("y").unwrap();
    g.output(&y, &float(&["1", "2"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "y"), "FLOAT[N, 2]");
    assert!(infer(&model).conflicts().is_empty());
    // For numbers it is a contradiction.
    let options = InferOptions::default().input("x", float(&["3", "2"]));
    assert_eq!(ShapesContext::infer(&model, &options).conflicts().len(), 1);
}
