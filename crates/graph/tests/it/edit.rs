//! Edits: names follow, bound values are not lost.

use heirloom_graph::{Error, Initializer, ModelBuilder, Problem};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_types::{StructLayout, StructType, Value, ValueType};

use crate::support::{accumulator, block, open, vector};

fn cache_model() -> heirloom_graph::Model {
    let mut model = ModelBuilder::new("cache");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &vector(2)).unwrap();
    let past = g.input(r"past.key\0", &vector(2)).unwrap();
    let present = g.node("Add").input(&past).input(&x).output("present_key").unwrap();
    let y = g.node("Neg").input(&present).output("y").unwrap();
    g.output(&y, &vector(2)).unwrap();
    g.output(&present, &vector(2)).unwrap();
    g.bind(&past, &present).unwrap();
    open(model.finish().unwrap()).unwrap()
}

fn bindings(model: &heirloom_graph::Model) -> Vec<(String, String)> {
    let graph = model.graph();
    let name = |value| graph.value_name(value).to_owned();
    graph.bindings().iter().map(|it| (name(it.input), name(it.output))).collect()
}

// proves: GB5, B1
#[test]
fn u45_renames_carry_the_binding_and_removing_a_bound_output_fails() {
    let model = cache_model();
    let mut edit = model.edit();
    edit.rename(r"past.key\0", "past_key").unwrap().rename("present_key", r"present.key\0").unwrap();
    let renamed = edit.finish().unwrap();
    assert_eq!(bindings(&renamed), [("past_key".to_owned(), r"present.key\0".to_owned())]);
    let node = &renamed.proto().graph().unwrap().node()[0];
    assert_eq!(node.input(), ["past_key", "x"]);
    assert_eq!(renamed.proto().graph().unwrap().node()[1].input(), [r"present.key\0"]);
    // The model that was edited is as it was.
    assert_eq!(bindings(&model), [(r"past.key\0".to_owned(), "present_key".to_owned())]);

    let mut edit = model.edit();
    edit.remove_output("present_key").unwrap();
    let Err(Error::Call { problem, .. }) = edit.finish() else { panic!() };
    let Problem::Bound { name, binding } = *problem else { panic!("{problem}") };
    assert_eq!((&*name, &*binding), ("present_key", r"past.key\0 <- present_key"));

    let mut edit = model.edit();
    edit.remove_output("present_key").unwrap().unbind(r"past.key\0").unwrap();
    let stateless = edit.finish().unwrap();
    assert!(bindings(&stateless).is_empty());
    assert_eq!(stateless.graph().outputs().len(), 1);
    // A name is literal: no part of one is a name.
    assert!(model.edit().unbind("past").is_err());
}

// proves: GB5
#[test]
fn a_rename_reaches_bodies_types_and_constants_and_stops_at_shadows() {
    let mut model = ModelBuilder::new("deep");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    g.initializer("w", &Tensor::from_vec(&[2], vec![1f32, 2.0]).unwrap()).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![0u8; 18])).unwrap();
    let h = g.node("Neg").input("w").output("h").unwrap();
    g.value_type(&h, &vector(2)).unwrap();
    let mut uses = g.body("uses");
    let out = uses.node("Add").input(&h).input("w").fresh("out").unwrap();
    uses.untyped_output(&out).unwrap();
    let uses = uses.finish();
    // A body with a value of its own called `h`.
    let mut shadows = g.closed_body("shadows");
    shadows.initializer("h", &Tensor::from_vec(&[2], vec![0f32, 0.0]).unwrap()).unwrap();
    let out = shadows.node("Neg").input("h").fresh("out").unwrap();
    shadows.untyped_output(&out).unwrap();
    let node = g.node("If").input(&flag).attr("then_branch", uses).attr("else_branch", shadows.finish());
    let y = node.output("y").unwrap();
    g.output(&y, &vector(2)).unwrap();
    let model = open(model.finish().unwrap()).unwrap();

    let mut edit = model.edit();
    edit.rename("h", "hidden").unwrap().rename("w", "weight").unwrap().rename("e", "encoded").unwrap();
    let renamed = edit.finish().unwrap();
    let graph = renamed.proto().graph().unwrap();
    assert_eq!(graph.initializer()[0].name(), "weight");
    assert_eq!(graph.encoded_initializer()[0].name(), "encoded");
    assert_eq!(graph.value_info()[0].name(), "hidden");
    assert_eq!((graph.node()[0].input(), graph.node()[0].output()).0, ["weight"]);
    let attributes = graph.node()[1].attribute();
    assert_eq!(attributes[0].g().unwrap().node()[0].input(), ["hidden", "weight"]);
    assert_eq!(attributes[1].g().unwrap().node()[0].input(), ["h"]);
}

// proves: GB5
#[test]
fn a_new_name_must_be_free_here_and_in_bodies() {
    let model = cache_model();
    let refused = |from: &str, to: &str| match model.edit().rename(from, to).map(|_| ()) {
        Err(Error::Call { problem, .. }) => *problem,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused("y", "x"), Problem::Taken { by, .. } if by == "an input"));
    assert!(matches!(refused("y", "present_key"), Problem::Taken { .. }));
    assert!(matches!(refused("z", "w"), Problem::Undefined { .. }));
    assert!(matches!(refused("y", ""), Problem::NoName { .. }));
    let same = model.edit();
    let mut same = same;
    same.rename("y", "y").unwrap();
    assert_eq!(same.finish().unwrap().proto().to_bytes(), model.proto().to_bytes());
}

#[test]
fn bindings_are_added_and_checked_by_an_edit() {
    let stateless = {
        let mut edit_from = accumulator().finish().unwrap();
        edit_from.graph_mut().persistent_bindings_mut().clear();
        open(edit_from).unwrap()
    };
    let mut edit = stateless.edit();
    edit.bind("s", "stateN").metadata("heirloom.note", Some("bound"));
    let bound = edit.finish().unwrap();
    assert_eq!(bindings(&bound), [("s".to_owned(), "stateN".to_owned())]);
    assert_eq!(bound.metadata_value("heirloom.note"), Some("bound"));
    let mut edit = stateless.edit();
    edit.bind("s", "state");
    let message = edit.finish().unwrap_err().to_string();
    assert!(message.contains("no output `state`"), "{message}");
}

#[test]
fn an_input_that_is_read_cannot_be_removed() {
    let model = cache_model();
    let mut edit = model.edit();
    edit.remove_input("x").unwrap();
    let message = edit.finish().unwrap_err().to_string();
    assert!(message.contains("`x` is made by no input"), "{message}");
}

// proves: C4, C6
#[test]
fn an_initializer_takes_another_form_and_its_type_is_declared_once() {
    let mut model = accumulator();
    let g = model.graph();
    g.initializer("dense", &Tensor::from_vec(&[2], vec![1f32, 2.0]).unwrap()).unwrap();
    g.encoded("records", &block(), None, Bytes::from_vec(vec![9u8; 18])).unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let graph = model.graph();
    let records = graph.initializer(graph.value("records").unwrap()).unwrap().value().unwrap();
    let dense = graph.initializer(graph.value("dense").unwrap()).unwrap().value().unwrap();
    let mut edit = model.edit();
    edit.set_initializer("dense", &records).unwrap().set_initializer("records", &dense).unwrap();
    let swapped = edit.finish().unwrap();
    let proto = swapped.proto().graph().unwrap();
    assert_eq!((proto.initializer()[0].name(), proto.encoded_initializer()[0].name()), ("records", "dense"));
    assert_eq!(swapped.proto().struct_types().len(), 1);
    let graph = swapped.graph();
    let Some(Initializer::Encoded(e)) = graph.initializer(graph.value("dense").unwrap()) else { panic!() };
    let Value::Encoded(before) = &records else { panic!() };
    assert_eq!(e.payload.address(), before.payload.address());

    // The same identity for something else is refused.
    let other = StructType::structure("other")
        .type_id(block().type_id().unwrap().get())
        .array("codes", DType::Uint8, 18)
        .build()
        .unwrap();
    let Value::Encoded(mut redefined) = records else { panic!() };
    let value = std::sync::Arc::make_mut(&mut redefined);
    value.layout = heirloom_types::Layout::Struct(StructLayout::new(other).unwrap().into());
    let mut edit = model.edit();
    let error = edit.set_initializer("dense", &Value::Encoded(redefined)).unwrap_err();
    let Error::Call { problem, .. } = &error else { panic!("{error}") };
    assert!(matches!(**problem, Problem::Type(heirloom_types::TypeError::Redefined { .. })), "{error}");
    let error = model.edit().set_initializer("dens", &dense).unwrap_err();
    assert!(error.to_string().contains("dense"), "{error}");
}
