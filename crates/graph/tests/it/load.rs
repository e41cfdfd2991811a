//! Opening models: scopes, order, single assignment; nothing executed, nothing copied.

use heirloom_graph::{Initializer, Model, ModelBuilder, OpenOptions, Problem};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use heirloom_types::ValueType;

use crate::support::{accumulator, block, faults, open, vector};

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let mut node = NodeProto::new();
    node.set_op_type(op);
    node.input_mut().extend(inputs);
    node.output_mut().extend(outputs);
    node
}

fn value(name: &str) -> ValueInfoProto {
    let mut value = ValueInfoProto::new();
    value.set_name(name);
    value.set_type(vector(2).to_proto());
    value
}

/// A model of these nodes, from input `x` to output `y`.
fn model_of(nodes: Vec<NodeProto>) -> ModelProto {
    let mut graph = GraphProto::new();
    graph.input_mut().push(value("x"));
    graph.output_mut().push(value("y"));
    *graph.node_mut() = nodes;
    let mut model = ModelProto::new();
    model.set_ir_version(10);
    let mut import = heirloom_proto::OperatorSetIdProto::new();
    import.set_version(21);
    model.opset_import_mut().push(import);
    model.set_graph(graph);
    model
}

#[test]
fn models_and_graphs_may_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Model>();
    is_shared::<heirloom_graph::Graph>();
}

#[test]
fn unsorted_nodes_are_sorted_and_sorted_ones_keep_their_order() {
    let sorted = open(model_of(vec![node("A", &["x"], &["a"]), node("B", &["a"], &["y"])])).unwrap();
    assert!(sorted.graph().is_sorted());
    let nodes = vec![
        node("C", &["b", "a"], &["y"]),
        node("B", &["a"], &["b"]),
        node("Free", &["x"], &["f"]),
        node("A", &["x"], &["a"]),
    ];
    let model = open(model_of(nodes)).unwrap();
    let graph = model.graph();
    let order: Vec<&str> = graph.ordered().map(|(_, node)| &*node.op_type).collect();
    assert_eq!(order, ["Free", "A", "B", "C"]);
    assert!(!graph.is_sorted());
    // Nodes keep their places in the file.
    assert_eq!(graph.nodes()[0].op_type, "C");
    let found = model.verify();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|fault| matches!(fault.problem, Problem::Unsorted { .. })));
    assert_eq!(found[0].path, "graph.node[0]");
}

#[test]
fn cycles_are_refused_with_the_nodes_on_them() {
    let mut second = node("B", &["a"], &["b"]);
    second.set_name("second");
    let nodes = vec![node("A", &["b", "x"], &["a"]), second, node("C", &["b"], &["y"])];
    let found = faults(model_of(nodes)).0;
    let [fault] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        fault.to_string(),
        "`graph`: nodes need each other's outputs: node[0] (`A`) → node `second` (`B`)"
    );
}

#[test]
fn a_body_that_needs_its_own_node_is_a_cycle() {
    let mut body = GraphProto::new();
    body.node_mut().push(node("Neg", &["y"], &["inner"]));
    body.output_mut().push(value("inner"));
    let mut outer = node("If", &["x"], &["y"]);
    let mut attribute = heirloom_proto::AttributeProto::new();
    attribute.set_name("then_branch");
    attribute.set_type(heirloom_proto::attribute_proto::AttributeType::GRAPH);
    attribute.set_g(body);
    outer.attribute_mut().push(attribute);
    assert!(matches!(faults(model_of(vec![outer])).0[0].problem, Problem::Cycle { .. }));
}

#[test]
fn a_value_is_made_once_and_each_fault_says_who_makes_it_already() {
    let nodes = vec![node("A", &["x"], &["y"]), node("B", &["x"], &["y"]), node("C", &["x"], &["x"])];
    let found = faults(model_of(nodes)).0;
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "`graph.node[1].output[0]`: `y` is defined twice: node[0] (`A`) makes it already; each value is made once",
            "`graph.node[2].output[0]`: `x` is defined twice: an input makes it already; each value is made once",
        ]
    );
}

#[test]
fn names_that_nothing_makes_come_with_those_that_were_meant() {
    let nodes =
        vec![node("A", &["hidden_stat"], &["hidden_state"]), node("B", &["hidden_state", "zzz"], &["y"])];
    let found = faults(model_of(nodes)).0;
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0].to_string(),
        "`graph.node[0].input[0]`: `hidden_stat` is made by no input, initializer or node; did you mean `hidden_state`?"
    );
    assert_eq!(found[1].path, "graph.node[1].input[1]");
}

#[test]
fn a_body_shadows_an_outer_name_and_captures_through_every_level() {
    let mut model = ModelBuilder::new("nested");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let x = g.input("x", &vector(2)).unwrap();
    let branch = |inner: heirloom_graph::Attr| inner;
    let mut middle = g.body("middle");
    let make_inner = |name: &str, middle: &heirloom_graph::GraphBuilder| {
        let mut inner = middle.body(name);
        let out = inner.node("Neg").input(&x).fresh("out").unwrap();
        inner.untyped_output(&out).unwrap();
        inner.finish()
    };
    let (then, other) = (make_inner("then", &middle), make_inner("else", &middle));
    let chosen = middle
        .node("If")
        .input(&flag)
        .attr("then_branch", branch(then.into()))
        .attr("else_branch", other)
        .output("chosen")
        .unwrap();
    middle.untyped_output(&chosen).unwrap();
    let middle = middle.finish();
    let y = g
        .node("If")
        .input(&flag)
        .attr("then_branch", middle.clone())
        .attr("else_branch", middle)
        .output("y")
        .unwrap();
    g.output(&y, &vector(2)).unwrap();
    let mut proto = model.finish().unwrap();

    let check = |proto: &ModelProto, expected: &[&str]| {
        let model = open(proto.clone()).unwrap();
        let graph = model.graph().clone();
        let body = graph.nodes()[0].attributes.graph("then_branch").unwrap().clone();
        let names: Vec<String> =
            body.captures().iter().map(|it| graph.value_name(it.outer).to_owned()).collect();
        assert_eq!(names, expected);
        let inner = body.nodes()[0].attributes.graph("then_branch").unwrap();
        let capture = inner.captures()[0];
        assert_eq!(body.value_name(capture.outer), "x");
        assert_eq!(inner.value_name(capture.inner), "x");
        body.clone()
    };
    let body = check(&proto, &["flag", "x"]);
    assert!(!body.is_constant(body.value("x").unwrap()));
    // The middle body has a constant of the name: nothing is captured from outside any more.
    let middle = proto.graph_mut().node_mut()[0].attribute_mut()[0].g_mut();
    let constant = Tensor::from_vec(&[2], vec![1f32, 2.0]).unwrap();
    middle.initializer_mut().push(heirloom_types::tensor_to_proto(&constant, "x").unwrap());
    let body = check(&proto, &["flag"]);
    assert!(body.is_constant(body.value("x").unwrap()));
}

// proves: C5
#[test]
fn initializer_names_are_unique_across_dense_sparse_and_encoded() {
    let mut model = accumulator();
    let g = model.graph();
    g.initializer("w", &Tensor::scalar(1f32)).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![0u8; 18])).unwrap();
    let sparse = heirloom_graph::SparseTensor {
        values: Tensor::from_vec(&[1], vec![5.0f32]).unwrap(),
        indices: Tensor::from_vec(&[1], vec![1i64]).unwrap(),
        shape: [4].into_iter().collect(),
    };
    g.sparse("p", &sparse).unwrap();
    let mut proto = model.finish().unwrap();
    let graph = proto.graph_mut();
    graph.sparse_initializer_mut()[0].values_mut().set_name("w");
    graph.encoded_initializer_mut()[0].set_name("w");
    let found = faults(proto).0;
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "`graph.sparse_initializer[0]`: the initializer name `w` occurs twice; an initializer has it already",
            "`graph.encoded_initializer[0]`: the initializer name `w` occurs twice; an initializer has it already",
        ]
    );
}

// proves: C5
#[test]
fn an_encoded_initializer_may_be_an_input_of_its_logical_type() {
    let mut model = accumulator();
    let g = model.graph();
    g.input("w", &vector(32)).unwrap();
    let logical = heirloom_types::TensorType { dtype: DType::Float, shape: [32].into_iter().collect() };
    g.encoded("w", &block(), Some(&logical), Bytes::from_vec(vec![0u8; 18])).unwrap();
    let mut proto = model.finish().unwrap();
    let opened = open(proto.clone()).unwrap();
    let w = opened.graph().value("w").unwrap();
    assert!(opened.graph().is_input(w));
    assert!(matches!(opened.graph().initializer(w), Some(Initializer::Encoded(_))));
    let input = proto.graph_mut().input_mut();
    input.iter_mut().find(|it| it.name() == "w").unwrap().set_type(vector(31).to_proto());
    assert!(matches!(faults(proto).0[0].problem, Problem::InitializerType { .. }));
}

// proves: W4, W5
#[test]
fn payloads_stay_in_the_bytes_that_were_given() {
    let mut model = accumulator();
    let g = model.graph();
    g.initializer("w", &Tensor::from_vec(&[64], vec![3f32; 64]).unwrap()).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![7u8; 36])).unwrap();
    let file = model.finish().unwrap().to_bytes();
    let model = Model::from_bytes(file.clone(), None, &OpenOptions::default()).unwrap();
    let graph = model.graph();
    let within = |address: usize| (file.address()..file.address() + file.len()).contains(&address);
    let Some(Initializer::Tensor(w)) = graph.initializer(graph.value("w").unwrap()) else { panic!() };
    let Some(Initializer::Encoded(e)) = graph.initializer(graph.value("e").unwrap()) else { panic!() };
    assert!(within(w.address()) && within(e.payload.address()));
    assert_eq!((w.region_id(), e.payload.region_id()), (file.region_id(), file.region_id()));
}

#[test]
fn functions_that_call_each_other_in_a_circle_are_refused() {
    let function = |name: &str, calls: &str| {
        let mut function = heirloom_proto::FunctionProto::new();
        function.set_domain("local");
        function.set_name(name);
        function.input_mut().push("a");
        function.output_mut().push("b");
        let mut call = node(calls, &["a"], &["b"]);
        call.set_domain("local");
        function.node_mut().push(call);
        function
    };
    let mut proto = model_of(vec![node("A", &["x"], &["y"])]);
    proto.functions_mut().extend([
        function("F", "G"),
        function("G", "H"),
        function("H", "G"),
        function("I", "F"),
    ]);
    let found = faults(proto).0;
    let [fault] = &found[..] else { panic!("{found:?}") };
    assert_eq!(fault.to_string(), "`functions[1]`: functions call each other: G → H");
}

#[test]
fn a_file_that_is_no_model_and_one_that_is_not_there_are_errors_that_name_it() {
    let folder = heirloom_testkit::folder::TempFolder::new();
    let path = folder.write("broken.onnx", b"\x3a\xff\xff\xff\xff\x0f");
    let error = Model::open(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("broken.onnx"), "{error}");
    let error =
        Model::open(folder.path().join("none.onnx"), &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("none.onnx"), "{error}");
    let error = open(ModelProto::new()).unwrap_err().to_string();
    assert!(error.contains("no graph"), "{error}");
}

// proves: W5
#[test]
fn damaged_models_are_refused_or_opened_and_never_worse() {
    let mut model = accumulator();
    let g = model.graph();
    g.input("blocks", &ValueType::sequence(ValueType::Struct(block()))).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![7u8; 36])).unwrap();
    g.initializer("w", &Tensor::from_vec(&[4], vec![3f32; 4]).unwrap()).unwrap();
    let mut body = g.body("body");
    let out = body.node("Add").input("x").input("s").fresh("out").unwrap();
    body.untyped_output(&out).unwrap();
    let body = body.finish();
    g.node("If").input("w").attr("then_branch", body.clone()).attr("else_branch", body).output("z").unwrap();
    let whole = model.finish().unwrap().to_bytes().to_vec();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next(3) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes[at] ^= 1 << next(8),
                _ => bytes.truncate(at + 1),
            }
        }
        match Model::from_bytes(Bytes::from_vec(bytes), None, &OpenOptions::default()) {
            Ok(model) => {
                opened += 1;
                model.verify();
                heirloom_graph::inspect(&model).to_string();
                // What was opened can be edited and written.
                if let Ok(model) = model.edit().finish() {
                    assert_eq!(model.proto().to_bytes(), model.proto().to_bytes());
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}
