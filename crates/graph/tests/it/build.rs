//! Authoring: everything can be written, and what is wrong is said by the call that is wrong.

use std::sync::Arc;

use heirloom_graph::{
    AttrValue, Error, FunctionBuilder, Initializer, ModelBuilder, PayloadSource, Problem, SparseTensor,
};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::ExternalLocation;
use heirloom_proto::attribute_proto::AttributeType;
use heirloom_types::{Affine, StringTensor, StructType, TensorType, ValueType};

use crate::support::{accumulator, block, dynamic, open, vector};

fn problem<T>(outcome: Result<T, Error>) -> Problem {
    match outcome {
        Err(Error::Call { problem, .. }) => *problem,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn float(shape: &[usize]) -> TensorType {
    TensorType { dtype: DType::Float, shape: shape.iter().copied().collect() }
}

// proves: GB2
#[test]
fn inputs_of_all_types_and_constants_of_all_kinds_can_be_written_and_read() {
    let mut model = ModelBuilder::new("all");
    model.opset("", 24).unwrap().opset("test", 1).unwrap();
    model.metadata("author", "me").doc("a model");
    let block = block();
    let g = model.graph();
    let types = [
        ("tensor", vector(3)),
        ("strings", ValueType::unranked(DType::String)),
        ("sparse", ValueType::Sparse(vector(3).as_tensor().unwrap().clone())),
        ("sequence", ValueType::sequence(vector(3))),
        ("optional", ValueType::optional(ValueType::sequence(vector(3)))),
        ("map", ValueType::map(DType::Int64, vector(1))),
        ("struct", ValueType::Struct(block.clone())),
        ("blocks", ValueType::sequence(ValueType::AnyStruct)),
    ];
    for (name, ty) in &types {
        g.input(name, ty).unwrap();
    }
    g.initializer("dense", &Tensor::from_vec(&[2], vec![1.0f32, 2.0]).unwrap()).unwrap();
    let words = StringTensor { shape: [1].into_iter().collect(), elements: vec![b"word"[..].into()] };
    g.strings("words", &words).unwrap();
    let sparse = SparseTensor {
        values: Tensor::from_vec(&[2], vec![5.0f32, 6.0]).unwrap(),
        indices: Tensor::from_vec(&[2], vec![1i64, 3]).unwrap(),
        shape: [4].into_iter().collect(),
    };
    g.sparse("few", &sparse).unwrap();
    g.encoded("records", &block, Some(&float(&[64])), Bytes::from_vec(vec![0u8; 36])).unwrap();
    g.encoded_by_id("more", 2001, Some(&float(&[32])), Bytes::from_vec(vec![0u8; 18])).unwrap();
    let affine = Affine {
        storage: DType::Int8,
        scale: Tensor::scalar(0.5f32),
        zero_point: None,
        axis: None,
        block_size: None,
    };
    g.affine("codes", &affine, &float(&[3]), Bytes::from_vec(vec![1u8, 2, 3])).unwrap();
    let out = g
        .node("Everything")
        .domain("test")
        .inputs(types.iter().map(|(name, _)| name))
        .skip()
        .input("records")
        .attr("int", 1)
        .attr("float", 0.5)
        .attr("text", "yes")
        .attr("ints", [1, 2])
        .attr("floats", [0.5f32])
        .attr("texts", ["a", "b"])
        .attr("tensor", Tensor::scalar(7i64))
        .attr("type", &vector(1))
        .output("out")
        .unwrap();
    g.output(&out, &dynamic(&["n"])).unwrap();

    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    for (name, ty) in &types {
        let value = graph.value(name).unwrap();
        assert!(graph.is_input(value) && graph.initializer(value).is_none());
        assert_eq!(graph.value_type(value), Some(ty), "{name}");
    }
    let constant = |name: &str| graph.initializer(graph.value(name).unwrap()).unwrap();
    let Initializer::Tensor(dense) = constant("dense") else { panic!() };
    assert_eq!(dense.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    assert!(matches!(constant("words"), Initializer::Strings(read) if **read == words));
    assert!(matches!(constant("few"), Initializer::Sparse(read) if read.shape[..] == [4]));
    let Initializer::Encoded(records) = constant("records") else { panic!() };
    assert_eq!(records.record_count(), Some(2));
    let Initializer::Encoded(more) = constant("more") else { panic!() };
    // One declaration for both (C4).
    let declared =
        |value: &heirloom_types::EncodedValue| value.layout.as_struct().unwrap().declaration.clone();
    assert!(Arc::ptr_eq(&declared(records), &declared(more)));
    assert!(matches!(constant("codes"), Initializer::Encoded(codes) if codes.layout.as_affine().is_some()));

    let node = &graph.nodes()[0];
    assert_eq!((&*node.name, node.inputs.len()), ("out", 10));
    assert_eq!(node.inputs[8], None);
    let attributes = &node.attributes;
    assert_eq!(attributes.int("int"), Ok(1));
    assert_eq!(attributes.float("float"), Ok(0.5));
    assert_eq!(attributes.string("text"), Ok(&b"yes"[..]));
    assert_eq!(attributes.ints("ints"), Ok(&[1, 2][..]));
    assert_eq!(attributes.floats("floats"), Ok(&[0.5f32][..]));
    assert_eq!(attributes.strings("texts").unwrap().len(), 2);
    assert_eq!(attributes.tensor("tensor").unwrap().as_slice::<i64>().unwrap(), [7]);
    assert!(matches!(attributes.get("type"), Some(AttrValue::Other(_))));
    assert_eq!(model.metadata_value("author"), Some("me"));
    assert_eq!((model.opset("ai.onnx"), model.opset("test"), model.ir_version()), (Some(24), Some(1), 12));
}

// proves: GB2
#[test]
fn a_node_is_refused_by_the_call_that_adds_it() {
    let mut model = accumulator();
    let g = model.graph();
    let found = problem(g.node("Add").input("x").input("stateM").output("z"));
    assert!(
        matches!(&found, Problem::Undefined { name, similar } if name == "stateM" && similar[0] == "stateN")
    );
    let found = problem(g.node("Add").input("x").input("s").output("y"));
    assert!(
        matches!(&found, Problem::Taken { name, by } if name == "y" && by == "an output of a node"),
        "{found}"
    );
    let found = problem(g.node("Fancy").domain("com.acme").input("x").output("z"));
    assert!(matches!(&found, Problem::NoOpset { domains, .. } if domains == &["ai.onnx"]), "{found}");
    let found = problem(g.node("Add").input("x").attr("a", 1).attr("a", 2).output("z"));
    assert!(matches!(&found, Problem::Duplicate { what: "attribute", .. }), "{found}");
    assert!(matches!(problem(g.node("").input("x").output("z")), Problem::NoOperator));
    let call = g.node("Add").name("plus").input("q").output("z").unwrap_err().to_string();
    assert!(call.starts_with("node `plus` (`Add`): `q` is made by no"), "{call}");
    // A refused call leaves nothing behind: the name is free.
    g.node("Add").input("x").input("s").output("z").unwrap();
    assert_eq!(model.finish().unwrap().graph().unwrap().node().len(), 3);
}

// proves: C5, GB2
#[test]
fn names_of_constants_are_unique_and_may_be_inputs_of_the_same_type() {
    let mut model = accumulator();
    let (block, two) = (block(), Tensor::from_vec(&[2], vec![0f32; 2]).unwrap());
    let g = model.graph();
    g.initializer("w", &two).unwrap();
    let payload = || Bytes::from_vec(vec![0u8; 18]);
    let twice = problem(g.encoded("w", &block, None, payload()));
    assert!(matches!(&twice, Problem::Taken { by, .. } if by == "an initializer"), "{twice}");
    // `s` is an input: a constant of its type is its value where nothing is fed.
    g.initializer("s", &two).unwrap();
    assert!(matches!(problem(g.initializer("s", &two)), Problem::Taken { .. }));
    let found = problem(g.initializer("x", &Tensor::from_vec(&[3], vec![0f32; 3]).unwrap()));
    assert!(matches!(&found, Problem::InitializerType { declared, .. } if declared == "FLOAT[2]"), "{found}");
    g.initializer("x", &two).unwrap();

    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    let s = graph.value("s").unwrap();
    assert!(graph.is_input(s) && graph.initializer(s).is_some() && !graph.is_constant(s));
    assert!(graph.is_constant(graph.value("w").unwrap()));
    assert_eq!(graph.required_inputs().count(), 0);
}

// proves: C6
#[test]
fn a_type_id_is_never_redefined() {
    let mut model = ModelBuilder::new("types");
    model.struct_type(&block()).unwrap();
    // The same again is no change.
    model.struct_type(&block()).unwrap();
    let wider = StructType::structure("Block")
        .field("scale", DType::Float16)
        .array("codes", DType::Uint4, 64)
        .type_id(2001)
        .build()
        .unwrap();
    let message = model.struct_type(&wider).unwrap_err().to_string();
    assert!(message.contains("type id 2001 is declared already and differs in"), "{message}");
    let used = problem(model.graph().input("a", &ValueType::sequence(ValueType::Struct(wider.clone()))));
    assert!(matches!(used, Problem::Type(heirloom_types::TypeError::Redefined { .. })));
    let used = problem(model.graph().encoded("b", &wider, None, Bytes::empty()));
    assert!(matches!(used, Problem::Type(heirloom_types::TypeError::Redefined { .. })));
    assert_eq!(model.catalogue().len(), 1);
}

// proves: GB2, E1
#[test]
fn payloads_are_measured_by_the_call_and_files_are_not_touched() {
    let mut model = ModelBuilder::new("payloads");
    let block = block();
    let g = model.graph();
    let place = |length| ExternalLocation::new("there/is/no/such.gguf", 1 << 40, length).unwrap();
    g.encoded("w", &block, Some(&float(&[64])), place(36)).unwrap();
    g.external_initializer("d", &float(&[5]), &place(20)).unwrap();
    let partial = problem(g.encoded("p", &block, None, place(37))).to_string();
    assert!(partial.contains("37") && partial.contains("18"), "{partial}");
    let partial =
        problem(g.encoded("p", &block, None, PayloadSource::Inline(Bytes::from_vec(vec![0u8; 17]))));
    assert!(matches!(
        partial,
        Problem::Type(heirloom_types::TypeError::PartialRecord { payload: 17, record: 18 })
    ));
    let short = problem(g.external_initializer("e", &float(&[5]), &place(19)));
    assert!(matches!(short, Problem::Length { expected: 20, actual: 19, .. }));
    let dynamic = StructType::structure("Open").typed("rows", dynamic(&["n"])).build().unwrap();
    assert!(matches!(problem(g.encoded("o", &dynamic, None, Bytes::empty())), Problem::Type(_)));
    let proto = model.finish().unwrap();
    // Opened as bytes, the constants are known and not at hand.
    let model = open(proto).unwrap();
    let graph = model.graph();
    let error = graph.initializer(graph.value("w").unwrap()).unwrap().value().unwrap_err().to_string();
    assert!(error.contains("`w`") && error.contains("base directory"), "{error}");
    assert_eq!(graph.value_type(graph.value("w").unwrap()), Some(&vector(64)));
}

// proves: GB2
#[test]
fn functions_are_called_like_operators_and_their_calls_are_measured() {
    let mut function = FunctionBuilder::new("local", "Scale");
    function.opset("", 24).unwrap();
    function.attribute_with_default("factor", 2.0).unwrap();
    let x = function.input("x").unwrap();
    let factor = function
        .node("Constant")
        .attr_ref("value_float", "factor", AttributeType::FLOAT)
        .fresh("factor_value")
        .unwrap();
    let y = function.node("Mul").input(&x).input(&factor).output("y").unwrap();
    function.output(&y).unwrap();
    let missing =
        problem(function.node("Constant").attr_ref("value_float", "nope", AttributeType::FLOAT).auto());
    assert!(matches!(&missing, Problem::AttributeReference { within: Some(name), .. } if name == "Scale"));
    assert!(matches!(
        problem(function.node("Relu").domain("other").input(&x).auto()),
        Problem::NoOpset { .. }
    ));

    let mut model = ModelBuilder::new("caller");
    model.opset("", 24).unwrap();
    model.function(function.finish().unwrap()).unwrap();
    let g = model.graph();
    let a = g.input("a", &vector(2)).unwrap();
    let many = problem(g.node("Scale").domain("local").input(&a).input(&a).output("b"));
    assert!(matches!(many, Problem::CallSize { what: "inputs", expected: 1, actual: 2, .. }));
    let b = g.node("Scale").domain("local").input(&a).attr("factor", 3.0).output("b").unwrap();
    g.output(&b, &vector(2)).unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let function = model.function("local", "Scale", "").unwrap();
    assert_eq!(function.defaults().float("factor"), Ok(2.0));
    assert_eq!((function.opset("ai.onnx"), function.body().nodes().len()), (Some(24), 2));
    let reference = function.body().nodes()[0].attributes.get("value_float");
    assert!(matches!(reference, Some(AttrValue::Reference(to)) if to == "factor"));
    assert_eq!(model.opset("local"), Some(1));
}

// proves: GB2
#[test]
fn bodies_see_what_is_around_them_and_nothing_sees_into_them() {
    let mut model = ModelBuilder::new("loop");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &vector(2)).unwrap();
    let count = g.scalar("count", 3i64).unwrap();
    let mut body = g.body("step");
    let i = body.input("i", &ValueType::tensor(DType::Int64, &[])).unwrap();
    let go = body.input("go", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let carried = body.input("carried", &vector(2)).unwrap();
    let sum = body.node("Add").input(&carried).input(&x).output("sum").unwrap();
    let still = body.node("Identity").input(&go).output("still").unwrap();
    body.output(&still, &ValueType::tensor(DType::Bool, &[])).unwrap();
    body.output(&sum, &vector(2)).unwrap();
    assert!(matches!(problem(body.input("x", &vector(2))), Problem::Taken { .. }));
    assert!(matches!(problem(g.node("Neg").input(&sum).auto()), Problem::Undefined { .. }));
    assert!(matches!(
        problem(g.closed_body("closed").node("Neg").input(&x).auto()),
        Problem::Undefined { .. }
    ));
    let _ = i;
    let last =
        g.node("Loop").input(&count).skip().input(&x).attr("body", body.finish()).output("last").unwrap();
    g.output(&last, &vector(2)).unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    let node = &graph.nodes()[0];
    let body = node.attributes.graph("body").unwrap();
    let captured: Vec<_> = body.captures().iter().map(|it| graph.value_name(it.outer)).collect();
    assert_eq!(captured, ["x"]);
    assert_eq!(node.captures().collect::<Vec<_>>(), [graph.value("x").unwrap()]);
}

#[test]
fn made_up_names_are_free_and_carry_the_prefix() {
    let mut model = accumulator();
    let g = model.graph();
    assert_eq!((g.unique("y"), g.unique("y"), g.unique("free")), ("y_1".into(), "y_2".into(), "free".into()));
    g.prefix("blk.0.");
    let a = g.node("Neg").input("x").auto().unwrap();
    let b = g.node("Neg").input(&a).auto().unwrap();
    assert_eq!((a.name(), b.name()), ("blk.0.Neg", "blk.0.Neg_1"));
}

#[test]
fn the_ir_version_is_the_one_that_came_with_the_operator_set() {
    // onnx.helper.VERSION_TABLE of onnx 1.23.2.
    for (opset, ir) in
        [(8, 3), (9, 4), (10, 5), (13, 7), (18, 8), (21, 10), (23, 11), (24, 12), (27, 13), (28, 14)]
    {
        let mut model = ModelBuilder::new("empty");
        model.opset("", opset).unwrap();
        assert_eq!(model.finish().unwrap().ir_version(), ir, "opset {opset}");
    }
}
