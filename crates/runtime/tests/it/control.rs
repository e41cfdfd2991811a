//! Control flow passes values along and computes what ONNX says.

use std::sync::Arc;

use heirloom_graph::{GraphBuilder, Model};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_runtime::{CallOptions, Feeds, RunError};
use heirloom_types::{Value, ValueType};

use crate::models::{dims, elements, float_type, floats, ints, model, session, shape};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

fn truth(value: bool) -> Tensor {
    Tensor::new(DType::Bool, &[], Bytes::from_vec(vec![u8::from(value)])).unwrap()
}

const BOOL: fn() -> ValueType = || ValueType::tensor(DType::Bool, &[]);

/// `big` goes through both branches of an `If`, one of which names it as it is, the other through `Identity`.
fn through_if(extent: usize) -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[extent]);
        let c = g.input("c", &BOOL()).unwrap();
        let big = g.input("big", &ty).unwrap();
        let mut then = g.body("then");
        let same = then.node("Identity").input(&big).output("same").unwrap();
        then.output(&same, &ty).unwrap();
        let mut otherwise = g.body("else");
        let inner = otherwise.node("Identity").input(&big).auto().unwrap();
        let again = otherwise.node("Identity").input(&inner).output("again").unwrap();
        otherwise.output(&again, &ty).unwrap();
        let (then, otherwise) = (then.finish(), otherwise.finish());
        let passed = g
            .node("If")
            .input(&c)
            .attr("then_branch", then)
            .attr("else_branch", otherwise)
            .output("next")
            .unwrap();
        g.output(&passed, &ty).unwrap();
        g.bind(&big, &passed).unwrap();
    })
}

// proves: R7, Z1
#[test]
fn u61_a_large_value_passes_through_if_untouched() {
    let extent = 16 << 20;
    let session = session(through_if(extent));
    let big = Tensor::from_vec(&[extent], vec![1.0f32; extent]).unwrap();
    let state = session.make_state([("big", big.clone())]).unwrap();
    for condition in [true, false, true] {
        let out = state.run([("c", truth(condition))], &options()).unwrap();
        assert_eq!(out["next"].as_tensor().unwrap().address(), big.address());
    }
    let counts = state.report().counts;
    assert_eq!((counts.state_copied_bytes, counts.kernel_copied_bytes, counts.allocated_bytes), (0, 0, 0));
}

#[test]
fn if_runs_one_branch_and_reads_values_from_around() {
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1]);
        let c = g.input("c", &BOOL()).unwrap();
        let x = g.input("x", &ty).unwrap();
        let twice = g.node("Add").input(&x).input(&x).auto().unwrap();
        let mut then = g.body("then");
        let a = then.node("Mul").input(&twice).input(&x).auto().unwrap();
        then.output(&a, &ty).unwrap();
        let mut otherwise = g.body("else");
        let table = otherwise.initializer("k", &floats(&[1], &[0.0])).unwrap();
        let index = otherwise.initializer("i", &ints(&[1], &[5])).unwrap();
        let bad = otherwise.node("Gather").name("fails").input(&table).input(&index).auto().unwrap();
        otherwise.output(&bad, &ty).unwrap();
        let (then, otherwise) = (then.finish(), otherwise.finish());
        let y = g
            .node("If")
            .name("choice")
            .input(&c)
            .attr("then_branch", then)
            .attr("else_branch", otherwise)
            .output("y")
            .unwrap();
        g.output(&y, &ty).unwrap();
    }));
    let x = || ("x", Value::from(floats(&[1], &[3.0])));
    let out = session.run([("c", truth(true).into()), x()], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [18.0]);
    let error = session.run([("c", truth(false).into()), x()], &options()).unwrap_err();
    assert!(matches!(&error, RunError::Node { node, .. } if node == "choice/fails"), "{error}");
}

/// A loop over `trips` iterations: `sum += x; row = sum * i`, stopping where the sum reaches 10.
fn loop_model() -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let trips = g.input("trips", &ValueType::tensor(DType::Int64, &[])).unwrap();
        let x = g.input("x", &ty).unwrap();
        let start = g.input("start", &ty).unwrap();
        let mut body = g.body("body");
        let i = body.input("i", &ValueType::tensor(DType::Int64, &[])).unwrap();
        body.input("go", &BOOL()).unwrap();
        let sum = body.input("sum", &ty).unwrap();
        let next = body.node("Add").input(&sum).input(&x).output("next").unwrap();
        let factor = body.node("Cast").input(&i).attr("to", 1).auto().unwrap();
        let row = body.node("Mul").input(&next).input(&factor).output("row").unwrap();
        let ten = body.scalar("ten", 10.0f32).unwrap();
        let zero = body.scalar("zero", 0i64).unwrap();
        let first = body.node("Gather").input(&next).input(&zero).auto().unwrap();
        let done = body.node("Equal").input(&first).input(&ten).auto().unwrap();
        let (no, yes) =
            (body.initializer("no", &truth(false)).unwrap(), body.initializer("yes", &truth(true)).unwrap());
        let go_on = body.node("Where").input(&done).input(&no).input(&yes).output("go_on").unwrap();
        body.output(&go_on, &BOOL()).unwrap();
        body.output(&next, &ty).unwrap();
        body.output(&row, &ty).unwrap();
        let body = body.finish();
        let [last, rows] = g
            .node("Loop")
            .input(&trips)
            .skip()
            .input(&start)
            .attr("body", body)
            .outputs(["last", "rows"])
            .unwrap();
        g.output(&last, &ty).unwrap();
        g.output(&rows, &float_type(dims(["n", "2"]))).unwrap();
    })
}

#[test]
fn loop_carries_values_and_stacks_rows() {
    let session = session(loop_model());
    let run = |trips: i64, x: f32| {
        let feeds = Feeds::new()
            .with("trips", ints(&[], &[trips]))
            .with("x", floats(&[2], &[x, 1.0]))
            .with("start", floats(&[2], &[0.0, 0.0]));
        let out = session.run(feeds, &options()).unwrap();
        (elements::<f32>(&out["last"]), shape(&out["rows"]), elements::<f32>(&out["rows"]))
    };
    assert_eq!(run(3, 1.0), (vec![3.0, 3.0], vec![3, 2], vec![0.0, 0.0, 2.0, 2.0, 6.0, 6.0]));
    // The condition stops the loop at 10 after two iterations.
    assert_eq!(run(9, 5.0), (vec![10.0, 2.0], vec![2, 2], vec![0.0, 0.0, 10.0, 2.0]));
    assert_eq!(run(0, 1.0), (vec![0.0, 0.0], vec![0, 2], vec![]));
}

fn scan_body(g: &GraphBuilder) -> heirloom_proto::GraphProto {
    let ty = ValueType::tensor(DType::Float, &[2]);
    let mut body = g.body("body");
    let sum = body.input("sum", &ty).unwrap();
    let x = body.input("x_t", &ty).unwrap();
    let next = body.node("Add").input(&sum).input(&x).output("next").unwrap();
    let copy = body.node("Neg").input(&next).output("copy").unwrap();
    body.output(&next, &ty).unwrap();
    body.output(&copy, &ty).unwrap();
    body.finish()
}

fn scan_model(axis: i64, backwards: i64) -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let start = g.input("start", &ty).unwrap();
        let x = g.input("x", &float_type(dims(["a", "b"]))).unwrap();
        let body = scan_body(g);
        let node = g.node("Scan").input(&start).input(&x).attr("body", body).attr("num_scan_inputs", 1);
        let node = node.attr("scan_input_axes", [axis]).attr("scan_input_directions", [backwards]);
        let node = node.attr("scan_output_axes", [axis]).attr("scan_output_directions", [backwards]);
        let [last, rows] = node.outputs(["last", "rows"]).unwrap();
        g.output(&last, &ty).unwrap();
        g.output(&rows, &float_type(dims(["c", "d"]))).unwrap();
    })
}

#[test]
fn scan_walks_an_axis_either_way() {
    let x = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let start = || ("start", floats(&[2], &[0.0, 0.0]));
    let out = session(scan_model(0, 0)).run([start(), ("x", x.clone())], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["last"]), [9.0, 12.0]);
    assert_eq!(elements::<f32>(&out["rows"]), [-1.0, -2.0, -4.0, -6.0, -9.0, -12.0]);
    let out = session(scan_model(0, 1)).run([start(), ("x", x)], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["rows"]), [-9.0, -12.0, -8.0, -10.0, -5.0, -6.0]);
    // Along the last axis: columns of a [2, 3] matrix.
    let x = floats(&[2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    let out = session(scan_model(-1, 0)).run([start(), ("x", x)], &options()).unwrap();
    assert_eq!(shape(&out["rows"]), [2, 3]);
    assert_eq!(elements::<f32>(&out["rows"]), [-1.0, -4.0, -9.0, -2.0, -6.0, -12.0]);
}

// proves: R7
#[test]
fn a_value_that_a_loop_only_passes_along_is_the_same_afterwards() {
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[4]);
        let s = g.input("s", &ty).unwrap();
        let trips = g.scalar("trips", 5i64).unwrap();
        let mut body = g.body("body");
        body.input("i", &ValueType::tensor(DType::Int64, &[])).unwrap();
        let go = body.input("go", &BOOL()).unwrap();
        let carried = body.input("carried", &ty).unwrap();
        let same = body.node("Identity").input(&carried).output("same").unwrap();
        let on = body.node("Identity").input(&go).output("on").unwrap();
        body.output(&on, &BOOL()).unwrap();
        body.output(&same, &ty).unwrap();
        let body = body.finish();
        let next = g.node("Loop").input(&trips).skip().input(&s).attr("body", body).output("next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let s = floats(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let state = session.make_state([("s", s.clone())]).unwrap();
    let out = state.run(Feeds::new(), &options()).unwrap();
    assert_eq!(out["next"].as_tensor().unwrap().address(), s.address());
    let counts = state.report().counts;
    assert_eq!((counts.state_copied_bytes, counts.kernel_copied_bytes), (0, 0));
}

#[test]
fn sequence_map_maps_each_element() {
    let session = session(model(|g| {
        let element = float_type(dims(["n"]));
        let list = g.input("list", &ValueType::sequence(element.clone())).unwrap();
        let by = g.input("by", &ValueType::tensor(DType::Float, &[])).unwrap();
        let mut body = g.closed_body("body");
        let x = body.input("x", &element).unwrap();
        let k = body.input("k", &ValueType::tensor(DType::Float, &[])).unwrap();
        let y = body.node("Mul").input(&x).input(&k).output("xk").unwrap();
        body.output(&y, &element).unwrap();
        let body = body.finish();
        let mapped =
            g.node("SequenceMap").input(&list).input(&by).attr("body", body).output("mapped").unwrap();
        g.output(&mapped, &ValueType::sequence(element)).unwrap();
    }));
    let list = Value::Sequence(Arc::new(vec![floats(&[2], &[1.0, 2.0]).into(), floats(&[1], &[5.0]).into()]));
    let out = session.run([("list", list), ("by", Tensor::scalar(10.0f32).into())], &options()).unwrap();
    let Value::Sequence(mapped) = &out["mapped"] else { panic!("a sequence") };
    assert_eq!(mapped.iter().map(elements::<f32>).collect::<Vec<_>>(), [vec![10.0, 20.0], vec![50.0]]);
}
