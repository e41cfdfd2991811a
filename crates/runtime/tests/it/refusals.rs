//! What a session refuses when it is made: everything in one error, by the nodes' names.

use std::sync::Arc;

use heirloom_graph::{GraphBuilder, Model};
use heirloom_mem::DType;
use heirloom_runtime::{Session, SessionError, SessionOptions};
use heirloom_types::ValueType;

use crate::models::{model_with, registry};

const ROWS: [usize; 4] = [1, 2, 3, 4];

fn tensor(shape: &[usize]) -> ValueType {
    ValueType::tensor(DType::Float, shape)
}

/// The faults of the nodes, each `name: what is wrong`.
fn faults(model: Arc<Model>) -> Vec<String> {
    match Session::new(model, &registry(), SessionOptions::default()) {
        Ok(_) => Vec::new(),
        Err(SessionError::Nodes(faults)) => {
            faults.iter().map(|fault| format!("{}: {}", fault.node, fault.kind)).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

fn preview(build: impl FnOnce(&mut GraphBuilder)) -> Arc<Model> {
    model_with(|model| {
        model.opset("ai.onnx.preview", 1).unwrap();
        build(model.graph());
    })
}

#[test]
fn every_form_of_flex_attention_that_is_not_honoured_is_refused_and_named_in_one_error() {
    let found = faults(preview(|g| {
        let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name, &tensor(&ROWS)).unwrap());
        let flex = |g: &mut GraphBuilder, name: &str, attribute: Option<(&str, i64)>| {
            let node = g.node("FlexAttention").domain("ai.onnx.preview").name(name);
            let node = node.input(&q).input(&k).input(&v);
            let node = match attribute {
                Some((name, value)) => node.attr(name, value),
                None => node,
            };
            let out = node.output(&format!("{name}_out")).unwrap();
            g.output(&out, &tensor(&ROWS)).unwrap();
        };
        flex(g, "plain", None);
        flex(g, "half_softmax", Some(("softmax_precision", 10)));
        flex(g, "integer_softmax", Some(("softmax_precision", 7)));
        flex(g, "no_type", Some(("softmax_precision", 999)));
        flex(g, "own_stage", Some(("stage", 1)));
        flex(g, "unknown", Some(("is_causal", 1)));
        let scores = tensor(&[1, 2, 3, 3]);
        let mut two = g.body("two");
        let first = two.input("first", &scores).unwrap();
        two.input("second", &scores).unwrap();
        let same = two.node("Identity").input(&first).output("same").unwrap();
        two.output(&same, &scores).unwrap();
        let two = two.finish();
        let node = g.node("FlexAttention").domain("ai.onnx.preview").name("two_inputs");
        let out = node.input(&q).input(&k).input(&v).attr("score_mod", two).output("two").unwrap();
        g.output(&out, &tensor(&ROWS)).unwrap();
        let node = g.node("FlexAttention").domain("ai.onnx.preview").name("no_values");
        let out = node.input(&q).input(&k).output("none").unwrap();
        g.output(&out, &tensor(&ROWS)).unwrap();
    }));
    let named = |node: &str, words: &str| {
        let prefix = format!("{node}: ");
        assert!(found.iter().any(|it| it.starts_with(&prefix) && it.contains(words)), "{node}: {found:#?}");
    };
    named("integer_softmax", "softmax_precision");
    named("no_type", "softmax_precision");
    named("own_stage", "stage");
    named("unknown", "is_causal");
    named("two_inputs", "score_mod");
    named("no_values", "inputs");
    assert!(!found.iter().any(|it| it.starts_with("plain") || it.starts_with("half_softmax")), "{found:#?}");
}
