//! Functions of the model are expanded where they are called.

use std::sync::Arc;

use heirloom_graph::{FunctionBuilder, ModelBuilder};
use heirloom_mem::DType;
use heirloom_proto::attribute_proto::AttributeType;
use heirloom_runtime::{CallOptions, Profile, RunError, Session, SessionError, SessionOptions};
use heirloom_types::ValueType;

use crate::models::{elements, floats, model_with, registry, session};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

/// `custom.Scale(x, bias?) = Swish(x, alpha = factor) + bias`, `factor` by default 1; without bias just the first.
fn scale(builder: &mut ModelBuilder) {
    let mut f = FunctionBuilder::new("custom", "Scale");
    f.opset("", 24).unwrap();
    f.attribute_with_default("factor", 1.0f32).unwrap();
    let x = f.input("x").unwrap();
    let y = f
        .node("Swish")
        .name("act")
        .input(&x)
        .attr_ref("alpha", "factor", AttributeType::FLOAT)
        .auto()
        .unwrap();
    f.output(&y).unwrap();
    builder.function(f.finish().unwrap()).unwrap();
    let mut g = FunctionBuilder::new("custom", "Twice");
    g.opset("", 24).unwrap();
    g.opset("custom", 1).unwrap();
    g.attribute("factor").unwrap();
    let x = g.input("x").unwrap();
    let a = g.node("Scale").domain("custom").name("inner").input(&x).attr_ref(
        "factor",
        "factor",
        AttributeType::FLOAT,
    );
    let a = a.auto().unwrap();
    let same = g.node("Identity").input(&x).auto().unwrap();
    g.output(&a).unwrap();
    g.output(&same).unwrap();
    builder.function(g.finish().unwrap()).unwrap();
}

fn swish(x: f32, alpha: f32) -> f32 {
    x / (1.0 + (-alpha * x).exp())
}

// proves: R7
#[test]
fn functions_are_expanded_with_their_attributes_and_pass_values_along() {
    let model = model_with(|builder| {
        scale(builder);
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let a = g.node("Scale").domain("custom").name("plain").input(&x).output("a").unwrap();
        let [b, next] = g
            .node("Twice")
            .domain("custom")
            .name("outer")
            .input(&s)
            .attr("factor", 3.0f32)
            .outputs(["b", "next"])
            .unwrap();
        for out in [&a, &b, &next] {
            g.output(out, &ty).unwrap();
        }
        g.bind(&s, &next).unwrap();
    });
    let session = session(model);
    let s = floats(&[2], &[0.5, -0.5]);
    let state = session.make_state([("s", s.clone())]).unwrap();
    let profile = Profile::new();
    let with_profile = CallOptions { profile: Some(&profile), ..options() };
    let out = state.run([("x", floats(&[2], &[1.0, 2.0]))], &with_profile).unwrap();
    assert_eq!(elements::<f32>(&out["a"]), [swish(1.0, 1.0), swish(2.0, 1.0)]);
    assert_eq!(elements::<f32>(&out["b"]), [swish(0.5, 3.0), swish(-0.5, 3.0)]);
    assert_eq!(out["next"].as_tensor().unwrap().address(), s.address());
    let mut names: Vec<_> = profile.nodes().into_iter().map(|node| node.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["outer/inner/act", "plain/act"]);
}

#[test]
fn an_input_that_the_call_leaves_out_is_absent_in_the_body() {
    let model = model_with(|builder| {
        let mut f = FunctionBuilder::new("custom", "Part");
        f.opset("", 24).unwrap();
        let [x, starts, ends, axes] = ["x", "starts", "ends", "axes"].map(|name| f.input(name).unwrap());
        let y = f.node("Slice").input(&x).input(&starts).input(&ends).input(&axes).auto().unwrap();
        f.output(&y).unwrap();
        builder.function(f.finish().unwrap()).unwrap();
        let g = builder.graph();
        let x = g.input("x", &ValueType::tensor(DType::Float, &[2, 2])).unwrap();
        let (one, two) = (g.vector("one", vec![1i64]).unwrap(), g.vector("two", vec![2i64]).unwrap());
        let y = g.node("Part").domain("custom").input(&x).input(&one).input(&two).output("row").unwrap();
        let z = g
            .node("Part")
            .domain("custom")
            .input(&x)
            .input(&one)
            .input(&two)
            .input(&one)
            .output("column")
            .unwrap();
        g.output(&y, &ValueType::tensor(DType::Float, &[1, 2])).unwrap();
        g.output(&z, &ValueType::tensor(DType::Float, &[2, 1])).unwrap();
    });
    let out = session(model).run([("x", floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["row"]), [3.0, 4.0]);
    assert_eq!(elements::<f32>(&out["column"]), [2.0, 4.0]);
}

#[test]
fn a_body_within_a_function_sees_what_the_call_left_out() {
    let model = model_with(|builder| {
        let mut f = FunctionBuilder::new("custom", "Clip");
        f.opset("", 24).unwrap();
        let [x, c, extent] = ["x", "c", "extent"].map(|name| f.input(name).unwrap());
        let passed = f.node("Identity").input(&extent).auto().unwrap();
        let zero = f.constant("zero", heirloom_mem::Tensor::from_vec(&[1], vec![0i64]).unwrap()).unwrap();
        let one = f.constant("one", heirloom_mem::Tensor::from_vec(&[1], vec![1i64]).unwrap()).unwrap();
        let mut then = f.body("then");
        let part = then.node("Slice").input(&x).input(&zero).input(&one).input(&passed).auto().unwrap();
        then.untyped_output(&part).unwrap();
        let mut otherwise = f.body("else");
        let same = otherwise.node("Identity").input(&x).auto().unwrap();
        otherwise.untyped_output(&same).unwrap();
        let (then, otherwise) = (then.finish(), otherwise.finish());
        let y =
            f.node("If").input(&c).attr("then_branch", then).attr("else_branch", otherwise).auto().unwrap();
        f.output(&y).unwrap();
        builder.function(f.finish().unwrap()).unwrap();
        let g = builder.graph();
        let x = g.input("x", &ValueType::tensor(DType::Float, &[2, 2])).unwrap();
        let c = g.input("c", &ValueType::tensor(DType::Bool, &[])).unwrap();
        let axis = g.vector("axis", vec![1i64]).unwrap();
        let rows = g.node("Clip").domain("custom").input(&x).input(&c).output("rows").unwrap();
        let columns =
            g.node("Clip").domain("custom").input(&x).input(&c).input(&axis).output("columns").unwrap();
        g.output(&rows, &ValueType::unranked(DType::Float)).unwrap();
        g.output(&columns, &ValueType::unranked(DType::Float)).unwrap();
    });
    let yes = heirloom_mem::Tensor::new(DType::Bool, &[], heirloom_mem::Bytes::from_vec(vec![1u8])).unwrap();
    let out =
        session(model).run([("x", floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), ("c", yes)], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["rows"]), [1.0, 2.0]);
    assert_eq!(elements::<f32>(&out["columns"]), [1.0, 3.0]);
}

#[test]
fn a_failure_inside_a_function_is_named_with_the_call() {
    let model = model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let mut f = FunctionBuilder::new("custom", "Checked");
        f.opset("test", 1).unwrap();
        let x = f.input("x").unwrap();
        let y = f.node("FailIfNegative").domain("test").name("check").input(&x).input(&x).auto().unwrap();
        f.output(&y).unwrap();
        builder.function(f.finish().unwrap()).unwrap();
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("x", &ty).unwrap();
        let y = g.node("Checked").domain("custom").name("layer.3").input(&x).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    });
    let session = session(Arc::clone(&model));
    let error = session.run([("x", floats(&[1], &[-1.0]))], &options()).unwrap_err();
    assert!(matches!(&error, RunError::Node { node, .. } if node == "layer.3/check"), "{error}");
    assert_eq!(elements::<f32>(&session.run([("x", floats(&[1], &[1.0]))], &options()).unwrap()["y"]), [1.0]);
}

#[test]
fn functions_that_multiply_are_stopped_before_they_fill_the_memory() {
    let model = model_with(|builder| {
        let mut last = FunctionBuilder::new("custom", "f0");
        last.opset("", 24).unwrap();
        let x = last.input("x").unwrap();
        let y = last.node("Neg").input(&x).auto().unwrap();
        last.output(&y).unwrap();
        builder.function(last.finish().unwrap()).unwrap();
        // Each calls the one before twice: 2^40 calls of the first.
        for level in 1..40 {
            let mut f = FunctionBuilder::new("custom", &format!("f{level}"));
            f.opset("custom", 1).unwrap();
            let x = f.input("x").unwrap();
            let inner = format!("f{}", level - 1);
            let a = f.node(&inner).domain("custom").input(&x).auto().unwrap();
            let b = f.node(&inner).domain("custom").input(&a).auto().unwrap();
            f.output(&b).unwrap();
            builder.function(f.finish().unwrap()).unwrap();
        }
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("x", &ty).unwrap();
        let y = g.node("f39").domain("custom").input(&x).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    });
    let error = Session::new(model, &registry(), SessionOptions::default()).unwrap_err();
    assert!(matches!(error, SessionError::TooLarge { .. }), "{error}");
}
