//! Shapes behind operators, followed through what exporters compute them with.

use heirloom_mem::{DType, Tensor};
use heirloom_types::{Dim, ValueType};

use crate::support::{builder, float, infer, open, shown};

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_vec(&[values.len()], Vec::from(values)).unwrap()
}

// proves: GB3
#[test]
fn u49_present_is_as_long_as_past_and_what_is_new() {
    let mut model = builder();
    let g = model.graph();
    let past = g.input("past", &float(&["batch", "4", "past", "16"])).unwrap();
    let q = g.input("q", &float(&["batch", "8", "new", "16"])).unwrap();
    let k = g.input("k", &float(&["batch", "4", "new", "16"])).unwrap();
    let joined = g.node("Concat").input(&past).input(&k).attr("axis", 2).output("joined").unwrap();
    let [y, present, _] = g
        .node("Attention")
        .inputs([&q, &k, &k])
        .skip()
        .inputs([&past, &past])
        .outputs(["y", "present", "present_value"])
        .unwrap();
    g.output(&y, &float(&["batch", "8", "new", "16"])).unwrap();
    g.output(&present, &float(&["batch", "4", "total", "16"])).unwrap();
    g.output(&joined, &float(&["batch", "4", "total", "16"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "joined"), "FLOAT[batch, 4, new + past, 16]");
    assert_eq!(shown(&model, "present"), "FLOAT[batch, 4, new + past, 16]");
    assert_eq!(shown(&model, "y"), "FLOAT[batch, 8, new, 16]");
    let context = infer(&model);
    let fact = context.main().fact(model.graph().value("present").unwrap());
    for past in [0, 1, 2, 16] {
        let extent = |name: &str| Some(if name == "past" { past } else { 1 });
        let shape = fact.ty.as_ref().unwrap().as_tensor().unwrap().shape_at(&extent).unwrap();
        assert_eq!(shape, [1, 4, past + 1, 16]);
    }
}

// proves: GB3
#[test]
fn a_shape_that_is_computed_is_followed() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["batch", "seq", "64"])).unwrap();
    let shape = g.node("Shape").input(&x).output("shape").unwrap();
    let zero = g.initializer("zero", &Tensor::scalar(0i64)).unwrap();
    let one = g.initializer("one", &Tensor::scalar(1i64)).unwrap();
    let front = g.initializer("front", &ints(&[0])).unwrap();
    let batch = g.node("Gather").input(&shape).input(&zero).output("batch_of_x").unwrap();
    let seq = g.node("Gather").input(&shape).input(&one).output("seq_of_x").unwrap();
    let batch = g.node("Unsqueeze").input(&batch).input(&front).output("b1").unwrap();
    let double = g.node("Add").input(&seq).input(&seq).output("double").unwrap();
    let double = g.node("Unsqueeze").input(&double).input(&front).output("d1").unwrap();
    let rest = g.initializer("rest", &ints(&[-1])).unwrap();
    let target = g.node("Concat").inputs([&batch, &double, &rest]).attr("axis", 0).output("target").unwrap();
    let y = g.node("Reshape").input(&x).input(&target).output("y").unwrap();
    let limit = g.node("Squeeze").input(&double).output("limit").unwrap();
    let r = g.node("Range").inputs([&zero, &limit, &one]).output("r").unwrap();
    g.output(&y, &float(&["a", "b", "c"])).unwrap();
    g.output(&r, &ValueType::symbolic(DType::Int64, [Dim::from("n")])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "y"), "FLOAT[batch, 2*seq, 32]");
    assert_eq!(shown(&model, "r"), "INT64[2*seq]");
}

#[test]
fn heads_are_split_and_joined_with_symbols_in_the_way() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["batch", "seq", "576"])).unwrap();
    let split = g.initializer("split", &ints(&[0, 0, 9, 64])).unwrap();
    let heads = g.node("Reshape").input(&x).input(&split).output("heads").unwrap();
    let turned = g.node("Transpose").input(&heads).attr("perm", [0i64, 2, 1, 3]).output("turned").unwrap();
    let back = g.node("Transpose").input(&turned).attr("perm", [0i64, 2, 1, 3]).output("back").unwrap();
    let join = g.initializer("join", &ints(&[0, 0, -1])).unwrap();
    let y = g.node("Reshape").input(&back).input(&join).output("y").unwrap();
    g.output(&y, &float(&["batch", "seq", "576"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "turned"), "FLOAT[batch, 9, seq, 64]");
    assert_eq!(shown(&model, "y"), "FLOAT[batch, seq, 576]");
}

#[test]
fn windows_slices_and_paddings_give_expressions() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["1", "3", "h", "w"])).unwrap();
    let w = g.initializer("w", &Tensor::from_vec(&[8, 3, 3, 3], vec![0f32; 216]).unwrap()).unwrap();
    let y = g.node("Conv").input(&x).input(&w).attr("strides", [2i64, 2]).attr("pads", [1i64, 1, 1, 1]);
    let y = y.output("y").unwrap();
    let pool = g.node("MaxPool").input(&y).attr("kernel_shape", [2i64, 2]).attr("strides", [2i64, 2]);
    let pool = pool.output("pool").unwrap();
    let (starts, ends) =
        (g.initializer("s", &ints(&[-2])).unwrap(), g.initializer("e", &ints(&[i64::MAX])).unwrap());
    let axis = g.initializer("axis", &ints(&[2])).unwrap();
    let last = g.node("Slice").inputs([&x, &starts, &ends, &axis]).output("last").unwrap();
    for (value, ty) in [(&pool, &["1", "8", "a", "b"]), (&last, &["1", "3", "c", "w"])] {
        g.output(value, &float(ty)).unwrap();
    }
    let model = open(model);
    assert_eq!(shown(&model, "y"), "FLOAT[1, 8, floor((h + 1)/2), floor((w + 1)/2)]");
    assert_eq!(shown(&model, "pool"), "FLOAT[1, 8, floor((h + 1)/4), floor((w + 1)/4)]");
    // Of one row there is one: two are not certain.
    assert_eq!(shown(&model, "last"), "FLOAT[1, 3, h - max(0, h - 2), w]");
}

#[test]
fn an_extent_that_depends_on_data_is_one_extent_wherever_it_goes() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n"])).unwrap();
    let places = g.node("NonZero").input(&x).output("places").unwrap();
    let turned = g.node("Transpose").input(&places).output("turned").unwrap();
    let picked = g.node("GatherND").input(&x).input(&turned).output("picked").unwrap();
    let sum = g.node("Add").input(&picked).input(&picked).output("sum").unwrap();
    let y = g.node("Neg").input(&sum).output("y").unwrap();
    g.output(&y, &float(&["count"])).unwrap();
    let model = open(model);
    let context = infer(&model);
    let ty = |name: &str| context.main().fact(model.graph().value(name).unwrap()).ty.clone().unwrap();
    assert_eq!(ty("picked"), ty("sum"));
    assert!(!ty("picked").is_closed());
}

#[test]
fn every_operator_that_has_a_rule_has_it_once() {
    let mut all: Vec<_> = heirloom_infer::operators().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(count > 220, "{count}");
}
