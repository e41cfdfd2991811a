//! Finding state.

use heirloom_graph::{Model, ModelBuilder};
use heirloom_infer::{InferOptions, ShapesContext};
use heirloom_mem::{DType, Tensor};
use heirloom_passes::bind::{Found, Reason, RefusedReason, find};
use heirloom_types::ValueType;

use crate::support::{builder, float, open};

fn found(model: &Model) -> Found {
    find(model, &ShapesContext::infer(model, &InferOptions::default()))
}

fn pairs(found: &Found) -> Vec<(&str, &str)> {
    found.pairs.iter().map(|pair| (&*pair.input, &*pair.output)).collect()
}

/// An input that a node copies to an output, each of its own type.
fn copies(values: &[(&str, &[&str], &str, &[&str])]) -> ModelBuilder {
    let mut model = builder();
    let g = model.graph();
    for (input, ty, output, out_ty) in values {
        let x = g.input(input, &float(ty)).unwrap();
        let y = g.node("Tanh").input(&x).output(output).unwrap();
        g.output(&y, &float(out_ty)).unwrap();
    }
    model
}

// proves: B1
#[test]
fn names_that_differ_in_old_and_new_alone_are_a_pair() {
    let same: &[&str] = &["1", "4"];
    let names = [
        ("state", "stateN"),
        ("h", "hn"),
        ("h0", "h_n"),
        ("past_key_values.0.decoder.key", "present.0.decoder.key"),
        ("past_key_values.0.decoder.value", "present.0.decoder.value"),
        ("cache_12", "next_cache_12"),
        ("hidden", "hidden_out"),
    ];
    let values: Vec<_> = names.iter().map(|(input, output)| (*input, same, *output, same)).collect();
    // `h` and `h0` stand for one another here, so they are apart.
    for part in [&values[..2], &values[2..]] {
        let model = open(copies(part));
        let found = found(&model);
        let expected: Vec<_> = part.iter().map(|(input, _, output, _)| (*input, *output)).collect();
        assert_eq!(pairs(&found), expected);
        assert_eq!(found.refused, []);
    }
}

#[test]
fn what_goes_in_and_out_alone_is_no_state() {
    let same: &[&str] = &["1", "4"];
    let model = open(copies(&[
        ("audio_in", same, "audio_out", same),
        ("input", same, "output", same),
        ("mix", same, "enh", same),
    ]));
    assert_eq!(found(&model), Found::default());
}

#[test]
fn two_partners_that_fit_equally_are_told_and_not_guessed() {
    let mut model = copies(&[("state", &["1", "4"], "state_out", &["1", "4"])]);
    let g = model.graph();
    let other = g.node("Neg").input("state").output("next_state").unwrap();
    g.output(&other, &float(&["1", "4"])).unwrap();
    let found = found(&open(model));
    assert_eq!(found.pairs, []);
    assert_eq!(found.refused.len(), 1);
    assert_eq!(
        found.refused[0].to_string(),
        "`state` could be paired with each of `state_out`, `next_state`"
    );
}

#[test]
fn types_that_never_agree_refuse_a_pair_of_names() {
    let found = found(&open(copies(&[("state", &["1", "4"], "stateN", &["1", "5"])])));
    assert_eq!(found.pairs, []);
    assert!(matches!(found.refused[0].reason, RefusedReason::Types { .. }), "{:?}", found.refused);
}

#[test]
fn a_cache_that_grows_is_a_pair_and_says_along_which_axis() {
    let mut model = builder();
    let g = model.graph();
    let past = g.input("past", &float(&["batch", "past", "8"])).unwrap();
    let x = g.input("x", &float(&["batch", "new", "8"])).unwrap();
    let y = g.node("Concat").input(&past).input(&x).attr("axis", 1).name("join").output("joined").unwrap();
    g.output(&y, &float(&["batch", "total", "8"])).unwrap();
    let found = found(&open(model));
    assert_eq!(pairs(&found), [("past", "joined")]);
    let reasons: Vec<String> = found.pairs[0].reasons.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "node `join` (`Concat`) takes the one and gives the other as its state",
            "axis 1 grows from past to new + past",
        ]
    );
}

#[test]
fn states_of_a_layer_are_told_apart_by_its_ports_whatever_their_names() {
    let mut model = builder();
    let g = model.graph();
    let x = g.input("a", &float(&["seq", "1", "3"])).unwrap();
    let h = g.input("b", &float(&["1", "1", "2"])).unwrap();
    let c = g.input("d", &float(&["1", "1", "2"])).unwrap();
    let zeros = |dims: &[usize]| Tensor::from_vec(dims, vec![0f32; dims.iter().product()]).unwrap();
    let w = g.initializer("w", &zeros(&[1, 8, 3])).unwrap();
    let r = g.initializer("r", &zeros(&[1, 8, 2])).unwrap();
    let lstm = g.node("LSTM").inputs([&x, &w, &r]).skip().skip().inputs([&h, &c]).attr("hidden_size", 2);
    let [y, yh, yc] = lstm.outputs(["y", "u", "v"]).unwrap();
    let yc = g.node("Transpose").input(&yc).attr("perm", [0i64, 1, 2]).output("t").unwrap();
    for value in [&yc, &yh] {
        g.output(value, &float(&["1", "1", "2"])).unwrap();
    }
    g.output(&y, &float(&["seq", "1", "1", "2"])).unwrap();
    assert_eq!(pairs(&found(&open(model))), [("b", "u"), ("d", "t")]);
}

#[test]
fn a_cell_that_is_written_out_is_known_by_its_gates() {
    let mut model = builder();
    let g = model.graph();
    let old = g.input("input_5", &float(&["1", "4"])).unwrap();
    let x = g.input("x", &float(&["1", "4"])).unwrap();
    let gate = g.node("Sigmoid").input(&x).output("gate").unwrap();
    let one = g.initializer("one", &Tensor::scalar(1f32)).unwrap();
    let rest = g.node("Sub").input(&one).input(&gate).output("rest").unwrap();
    let kept = g.node("Mul").input(&gate).input(&old).output("kept").unwrap();
    let new = g.node("Tanh").input(&x).output("candidate").unwrap();
    let new = g.node("Mul").input(&rest).input(&new).output("fresh").unwrap();
    let sum = g.node("Add").input(&kept).input(&new).output("stack_5").unwrap();
    g.output(&sum, &float(&["1", "4"])).unwrap();
    let found = found(&open(model));
    assert_eq!(pairs(&found)[0], ("input_5", "stack_5"));
    assert!(matches!(found.pairs[0].reasons[0], Reason::Node { .. }));
}

#[test]
fn an_output_that_a_branch_empties_is_not_bound() {
    let mut model = builder();
    let g = model.graph();
    let past = g.input("past.0.encoder", &float(&["b", "8"])).unwrap();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let mut then = g.body("then");
    let same = then.node("Identity").input(&past).output("same").unwrap();
    then.output(&same, &float(&["b", "8"])).unwrap();
    let mut other = g.body("other");
    let shape = other.initializer("shape", &Tensor::from_vec(&[2], vec![0i64, 8]).unwrap()).unwrap();
    let empty = other.node("ConstantOfShape").input(&shape).output("empty").unwrap();
    other.output(&empty, &float(&["z", "8"])).unwrap();
    let (then, other) = (then.finish(), other.finish());
    let y = g.node("If").input(&flag).attr("then_branch", then).attr("else_branch", other);
    let y = y.output("present.0.encoder").unwrap();
    g.output(&y, &float(&["b", "8"])).unwrap();
    let found = found(&open(model));
    assert_eq!(found.pairs, []);
    assert!(matches!(&found.refused[0].reason, RefusedReason::Emptied { ty, .. } if ty == "FLOAT[0, 8]"));
}

#[test]
fn bindings_that_are_declared_are_listed_and_left_alone() {
    let mut model = copies(&[("state", &["1", "4"], "stateN", &["1", "4"])]);
    model.graph().bind("state", "stateN").unwrap();
    let found = found(&open(model));
    assert_eq!(found.declared, [("state".into(), "stateN".into())]);
    assert!(found.pairs.is_empty() && found.refused.is_empty());
}
