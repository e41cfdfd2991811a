//! Persistent bindings: which are accepted, and why others are not.

use heirloom_graph::{Error, ModelBuilder, Problem, verify};
use heirloom_mem::DType;
use heirloom_proto::{ExternalResolver, ModelProto, PersistentBindingProto};
use heirloom_types::{Dim, StructType, ValueType};

use crate::support::{accumulator, faults, open, vector};

fn binding(input: &str, output: &str) -> PersistentBindingProto {
    let mut binding = PersistentBindingProto::new();
    binding.set_input_name(input);
    binding.set_output_name(output);
    binding
}

/// A model with an input and an output of these types, bound to each other behind the builder's back.
fn bound(input: &ValueType, output: &ValueType) -> ModelProto {
    let mut model = ModelBuilder::new("bound");
    model.opset("", 24).unwrap();
    model.opset("test", 1).unwrap();
    let g = model.graph();
    let a = g.input("a", input).unwrap();
    let b = g.node("Step").domain("test").input(&a).output("b").unwrap();
    g.output(&b, output).unwrap();
    let mut proto = model.finish().unwrap();
    proto.graph_mut().persistent_bindings_mut().push(binding("a", "b"));
    proto
}

fn problems(proto: ModelProto) -> Vec<Problem> {
    faults(proto).0.into_iter().map(|fault| fault.problem).collect()
}

// proves: B2, GB6
#[test]
fn u1_a_binding_to_a_missing_output_names_it_and_the_real_outputs() {
    let mut proto = accumulator().finish().unwrap();
    proto.graph_mut().persistent_bindings_mut()[0].set_output_name("state");
    let listed = verify(&proto, &ExternalResolver::without_base_dir());
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].path, "graph.persistent_bindings[0]");
    let message = listed[0].to_string();
    assert!(message.contains("no output `state`") && message.contains("`y`, `stateN`"), "{message}");
    // The session is made from a model, and the model cannot be had.
    let refused = open(proto).unwrap_err().to_string();
    assert!(refused.contains("no output `state`") && refused.contains("`y`, `stateN`"), "{refused}");
}

// proves: B2
#[test]
fn unknown_inputs_are_named_with_the_real_ones() {
    let mut proto = accumulator().finish().unwrap();
    proto.graph_mut().persistent_bindings_mut()[0].set_input_name("y");
    let message = faults(proto).to_string();
    assert!(message.contains("no input `y`; its inputs: `x`, `s`"), "{message}");
}

// proves: B1
#[test]
fn dots_and_backslashes_in_names_are_literal() {
    let mut model = ModelBuilder::new("literal");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let cache = g.input(r"cache.keys\0", &vector(2)).unwrap();
    g.input("cache", &vector(2)).unwrap();
    let next = g.node("Neg").input(&cache).output(r"next.keys\0").unwrap();
    g.output(&next, &vector(2)).unwrap();
    g.bind(r"cache.keys\0", r"next.keys\0").unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    let bound = graph.bindings()[0];
    assert_eq!(graph.value_name(bound.input), r"cache.keys\0");
    assert_eq!(graph.value_name(bound.output), r"next.keys\0");
    // A field of the output cannot be chosen.
    let mut proto = accumulator().finish().unwrap();
    proto.graph_mut().persistent_bindings_mut()[0].set_output_name("stateN.field");
    assert!(faults(proto).to_string().contains("no output `stateN.field`"));
}

// proves: B2
#[test]
fn an_input_or_output_is_bound_once() {
    let mut proto = accumulator().finish().unwrap();
    proto.graph_mut().persistent_bindings_mut().push(binding("x", "stateN"));
    let found = problems(proto);
    assert!(
        matches!(&found[..], [Problem::BindingTwice { what: "output", first, .. }] if first == "s <- stateN"),
        "{found:?}"
    );
    let mut proto = accumulator().finish().unwrap();
    proto.graph_mut().persistent_bindings_mut().push(binding("s", "y"));
    let found = problems(proto);
    assert!(matches!(&found[..], [Problem::BindingTwice { what: "input", .. }]), "{found:?}");
}

// proves: B2
#[test]
fn types_that_can_never_agree_are_refused() {
    let known = |dims: &[usize]| ValueType::tensor(DType::Float, dims);
    let symbolic = |dims: [Dim; 2]| ValueType::symbolic(DType::Float, dims);
    let pair = |name: &str| {
        StructType::structure(name).field("a", DType::Float).field("b", DType::Float).build().unwrap()
    };
    let refused = [
        (known(&[2]), known(&[3]), "axis 0 has 2 and 3 elements"),
        (known(&[2]), known(&[2, 1]), "rank 1 and rank 2"),
        (known(&[2]), ValueType::tensor(DType::Int64, &[2]), "elements of FLOAT and of INT64"),
        (known(&[2]), ValueType::sequence(known(&[2])), "FLOAT[2] and sequence of FLOAT[2]"),
        (
            symbolic([Dim::from("batch"), Dim::from(3)]),
            symbolic([Dim::from("rows"), Dim::from(4)]),
            "axis 1 has 3 and 4 elements",
        ),
        (ValueType::sequence(known(&[2])), ValueType::sequence(known(&[3])), "`[]`: axis 0"),
        (
            ValueType::Struct(pair("inline")),
            ValueType::Struct(StructType::structure("other").field("a", DType::Float).build().unwrap()),
            "fields",
        ),
    ];
    for (input, output, reason) in refused {
        let found = problems(bound(&input, &output));
        let [Problem::BindingTypes { reason: said, .. }] = &found[..] else { panic!("{found:?}") };
        assert!(said.contains(reason), "{said}");
    }
}

// proves: B2
#[test]
fn shapes_that_may_agree_are_left_to_the_call() {
    let pair = || {
        let rows = ValueType::symbolic(DType::Float, [Dim::from("past"), Dim::from(4)]);
        ValueType::Struct(StructType::structure("").typed("rows", rows).build().unwrap())
    };
    let later = ValueType::symbolic(DType::Float, [Dim::from("past + new"), Dim::from(4)]);
    let now = ValueType::symbolic(DType::Float, [Dim::from("past"), Dim::from(4)]);
    let accepted = [
        (now.clone(), later.clone()),
        (ValueType::tensor(DType::Float, &[7, 4]), later.clone()),
        (ValueType::unranked(DType::Float), now.clone()),
        (pair(), ValueType::Struct(StructType::structure("").typed("rows", later).build().unwrap())),
        (ValueType::sequence(ValueType::AnyStruct), ValueType::sequence(pair())),
        (ValueType::sequence(pair()), ValueType::sequence(ValueType::AnyStruct)),
    ];
    for (input, output) in accepted {
        let model = open(bound(&input, &output)).unwrap();
        assert_eq!(model.graph().bindings().len(), 1, "{input} <- {output}");
    }
}

// proves: B2
#[test]
fn layouts_are_told_apart_by_type_id() {
    let block = |id: u64| {
        let ty = StructType::structure("Block").array("codes", DType::Int4, 32).type_id(id).build();
        ValueType::Struct(ty.unwrap())
    };
    assert_eq!(open(bound(&block(7), &block(7))).unwrap().graph().bindings().len(), 1);
    let found = problems(bound(&block(7), &block(8)));
    assert!(matches!(&found[..], [Problem::BindingTypes { .. }]), "{found:?}");
}

// proves: B2
#[test]
fn strings_are_refused_wherever_they_hide() {
    let strings = ValueType::tensor(DType::String, &[1]);
    let names = StructType::structure("Names").typed("names", strings.clone()).type_id(31).build().unwrap();
    let outer = StructType::structure("Outer").nested("inner", &names).type_id(32).build().unwrap();
    let labels =
        heirloom_types::StringTensor { shape: [1].into_iter().collect(), elements: vec![b"a"[..].into()] };
    let labelled = StructType::structure("Labelled")
        .field("a", DType::Float)
        .constant_value("labels", heirloom_types::Constant::Strings(labels.into()))
        .build()
        .unwrap();
    for ty in [
        strings.clone(),
        ValueType::sequence(strings.clone()),
        ValueType::optional(strings.clone()),
        ValueType::map(DType::String, vector(1)),
        ValueType::map(DType::Int64, strings),
        ValueType::Struct(names.clone()),
        ValueType::Struct(outer.clone()),
        ValueType::sequence(ValueType::Struct(outer)),
        ValueType::Struct(labelled),
    ] {
        let found = problems(bound(&ty, &ty));
        assert!(
            found.len() == 2 && found.iter().all(|it| matches!(it, Problem::BindingStrings { .. })),
            "{ty}: {found:?}"
        );
    }
}

// proves: B2
#[test]
fn bindings_in_bodies_are_refused_and_values_may_pass_through_bodies() {
    let mut model = ModelBuilder::new("through");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let scalar = ValueType::tensor(DType::Bool, &[]);
    let condition = g.input("condition", &scalar).unwrap();
    let state = g.input("state", &vector(2)).unwrap();
    let branches: Vec<_> = ["Neg", "Abs"]
        .into_iter()
        .map(|op| {
            let mut body = g.body(op);
            let out = body.node(op).input(&state).fresh("out").unwrap();
            body.untyped_output(&out).unwrap();
            let refused = body.bind("state", &out).unwrap_err().to_string();
            assert!(refused.contains("bindings belong to the model's main graph"), "{refused}");
            body.finish()
        })
        .collect();
    let [then, otherwise] = branches.try_into().unwrap();
    let node = g.node("If").input(&condition);
    let next = node.attr("then_branch", then).attr("else_branch", otherwise).output("next").unwrap();
    g.output(&next, &vector(2)).unwrap();
    g.bind(&state, &next).unwrap();
    let mut proto = model.finish().unwrap();
    assert_eq!(open(proto.clone()).unwrap().graph().bindings().len(), 1);

    let body = proto.graph_mut().node_mut()[0].attribute_mut()[1].g_mut();
    body.persistent_bindings_mut().push(binding("state", "out"));
    let found = faults(proto).0;
    assert_eq!(found[0].path, "graph.node[0].attribute[1].g.persistent_bindings[0]");
    assert!(matches!(found[0].problem, Problem::BindingInBody { .. }));
}

// proves: B3
#[test]
fn a_model_without_bindings_is_stateless_and_a_binding_holds_names_alone() {
    let mut proto = accumulator().finish().unwrap();
    let names: Vec<&str> = PersistentBindingProto::info().fields.iter().map(|field| field.name).collect();
    assert_eq!(names, ["input_name", "output_name"]);
    proto.graph_mut().persistent_bindings_mut().clear();
    assert!(open(proto).unwrap().graph().bindings().is_empty());
}

// proves: B4
#[test]
fn two_values_of_one_struct_type_have_bindings_of_their_own() {
    let cache = StructType::structure("Cache")
        .typed("keys", ValueType::unranked(DType::Float16))
        .field("length", DType::Int64)
        .type_id(9)
        .build()
        .unwrap();
    let ty = ValueType::Struct(cache);
    let mut model = ModelBuilder::new("two");
    model.opset("test", 1).unwrap();
    let g = model.graph();
    let inputs = ["a", "b", "c"].map(|name| g.input(name, &ty).unwrap());
    let next = g.node("Step").domain("test").inputs(&inputs).outputs(["x", "y", "z"]).unwrap();
    next.iter().for_each(|value| g.output(value, &ty).unwrap());
    g.bind("a", "y").unwrap();
    g.bind("b", "x").unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    let pairs: Vec<_> = graph
        .bindings()
        .iter()
        .map(|it| (graph.value_name(it.input).to_owned(), graph.value_name(it.output).to_owned()))
        .collect();
    assert_eq!(pairs, [("a".into(), "y".into()), ("b".into(), "x".into())]);
    assert!(graph.binding_of(graph.value("c").unwrap()).is_none());
    assert_eq!(model.catalogue().len(), 1);
}

// proves: B2, GB2
#[test]
fn the_builder_refuses_a_binding_at_the_call() {
    let mut model = accumulator();
    let g = model.graph();
    let wide = g.node("Concat").input("x").input("s").attr("axis", 0).output("wide").unwrap();
    g.output(&wide, &vector(4)).unwrap();
    let message = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
    assert!(message(g.bind("x", "wide")).contains("axis 0 has 2 and 4 elements"));
    assert!(message(g.bind("x", "stateN")).contains("the output is in the binding s <- stateN already"));
    assert!(message(g.bind("x", "q")).contains("no output `q`; its outputs: `y`, `stateN`, `wide`"));
    assert!(message(g.bind("q", "y")).contains("no input `q`; its inputs: `x`, `s`"));
}
