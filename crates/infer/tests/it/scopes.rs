//! Bodies and functions.

use heirloom_graph::{FunctionBuilder, ModelBuilder};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::attribute_proto::AttributeType;
use heirloom_types::ValueType;

use crate::support::{builder, float, infer, open, shown};

// proves: GB3
#[test]
fn branches_see_the_values_around_them_and_only_what_both_say_is_certain() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n", "4"])).unwrap();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let mut then = g.body("then");
    let same = then.node("Relu").input(&x).output("same").unwrap();
    then.output(&same, &float(&["n", "4"])).unwrap();
    let mut other = g.body("other");
    let twice = other.node("Concat").input(&x).input(&x).attr("axis", 0).output("twice").unwrap();
    other.output(&twice, &float(&["m", "4"])).unwrap();
    let (then, other) = (then.finish(), other.finish());
    let y =
        g.node("If").input(&flag).attr("then_branch", then).attr("else_branch", other).output("y").unwrap();
    g.output(&y, &float(&["m", "4"])).unwrap();
    let model = open(model);
    let context = infer(&model);
    let node = model.graph().producer(model.graph().value("y").unwrap()).unwrap();
    let inner = context.main().body(node, "else_branch").unwrap();
    let heirloom_graph::AttrValue::Graph(body) =
        model.graph().node(node).attributes.get("else_branch").unwrap()
    else {
        panic!("no body")
    };
    let fact = inner.fact(body.value("twice").unwrap());
    assert_eq!(fact.ty.as_ref().unwrap().to_string(), "FLOAT[2*n, 4]");
    assert_eq!(shown(&model, "y"), "FLOAT[m, 4]");
}

fn counting_loop(trips: Option<i64>) -> ModelBuilder {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n"])).unwrap();
    let count = match trips {
        Some(trips) => g.initializer("trips", &Tensor::scalar(trips)).unwrap(),
        None => g.input("trips", &ValueType::tensor(DType::Int64, &[])).unwrap(),
    };
    let mut body = g.body("body");
    body.input("at", &ValueType::tensor(DType::Int64, &[])).unwrap();
    body.input("going", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let grown = body.input("grown", &float(&["?"])).unwrap();
    let kept = body.input("kept", &float(&["?"])).unwrap();
    let more = body.node("Concat").input(&grown).input(&kept).attr("axis", 0).output("more").unwrap();
    let next = body.node("Neg").input(&kept).output("next").unwrap();
    let yes = Tensor::new(DType::Bool, &[], Bytes::from_vec(vec![1u8])).unwrap();
    let yes = body.initializer("yes", &yes).unwrap();
    body.output(&yes, &ValueType::tensor(DType::Bool, &[])).unwrap();
    for value in [&more, &next, &kept] {
        body.output(value, &float(&["?"])).unwrap();
    }
    let body = body.finish();
    let [a, b, c] = g
        .node("Loop")
        .input(&count)
        .skip()
        .inputs([&x, &x])
        .attr("body", body)
        .outputs(["a", "b", "c"])
        .unwrap();
    g.output(&a, &float(&["?"])).unwrap();
    g.output(&b, &float(&["?"])).unwrap();
    g.output(&c, &float(&["?", "?"])).unwrap();
    model
}

// proves: GB3
#[test]
fn a_loop_keeps_what_no_round_changes_and_collects_as_many_as_it_runs() {
    let model = open(counting_loop(Some(5)));
    assert_eq!(shown(&model, "a"), "FLOAT[?]");
    assert_eq!(shown(&model, "b"), "FLOAT[n]");
    assert_eq!(shown(&model, "c"), "FLOAT[5, n]");
    let unknown = open(counting_loop(None));
    assert!(shown(&unknown, "c").ends_with(", n]"), "{}", shown(&unknown, "c"));
    let context = infer(&unknown);
    assert!(!context.main().fact(unknown.graph().value("c").unwrap()).ty.as_ref().unwrap().is_closed());
}

// proves: GB3
#[test]
fn a_function_is_inferred_for_each_call_with_its_attributes() {
    let mut model = builder();
    let mut function = FunctionBuilder::new("local", "Swap");
    function.opset("", 24).unwrap();
    function.attribute("order").unwrap();
    let x = function.input("x").unwrap();
    let y = function
        .node("Transpose")
        .input(&x)
        .attr_ref("perm", "order", AttributeType::INTS)
        .output("y")
        .unwrap();
    function.output(&y).unwrap();
    model.function(function.finish().unwrap()).unwrap();
    let g = model.graph();
    let x = g.input("x", &float(&["a", "b", "c"])).unwrap();
    let y = g.node("Swap").domain("local").input(&x).attr("order", [2i64, 0, 1]).output("first").unwrap();
    let z = g.node("Swap").domain("local").input(&y).attr("order", [0i64, 2, 1]).output("second").unwrap();
    g.output(&z, &float(&["c", "b", "a"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "first"), "FLOAT[c, a, b]");
    assert_eq!(shown(&model, "second"), "FLOAT[c, b, a]");
}
