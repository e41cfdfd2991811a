//! A state equals the loop that feeds outputs back by hand.

use heirloom_mem::DType;
use heirloom_runtime::{CallOptions, Feeds};
use heirloom_types::{Value, ValueType};
use proptest::prelude::*;

use crate::models::{elements, floats, model, session};

/// A node of a random model: an operator and which earlier values it reads.
#[derive(Clone, Debug)]
struct Step {
    op: usize,
    reads: [usize; 2],
}

const OPS: [&str; 4] = ["Add", "Sub", "Mul", "Identity"];

#[derive(Clone, Debug)]
struct Case {
    states: usize,
    steps: Vec<Step>,
    /// The value that each state takes on.
    next: Vec<usize>,
    xs: Vec<[f32; 3]>,
}

fn case() -> impl Strategy<Value = Case> {
    let step = (0..OPS.len(), any::<[prop::sample::Index; 2]>());
    (1usize..5, prop::collection::vec(step, 1..14), prop::collection::vec(any::<prop::sample::Index>(), 5))
        .prop_flat_map(|(states, raw, next)| {
            let steps: Vec<Step> = raw
                .iter()
                .enumerate()
                .map(|(at, (op, reads))| Step { op: *op, reads: reads.map(|i| i.index(1 + states + at)) })
                .collect();
            let values = 1 + states + steps.len();
            let next: Vec<usize> = (0..states).map(|at| next[at].index(values)).collect();
            let xs = prop::collection::vec(prop::array::uniform3(-2i8..3), 1..6);
            xs.prop_map(move |xs| Case {
                states,
                steps: steps.clone(),
                next: next.clone(),
                xs: xs.into_iter().map(|x| x.map(f32::from)).collect(),
            })
        })
}

fn build(case: &Case) -> std::sync::Arc<heirloom_graph::Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[3]);
        let mut values = vec![g.input("x", &ty).unwrap()];
        for at in 0..case.states {
            values.push(g.input(&format!("s{at}"), &ty).unwrap());
        }
        for step in &case.steps {
            let node = g.node(OPS[step.op]).input(&values[step.reads[0]]);
            let node = if step.op == 3 { node } else { node.input(&values[step.reads[1]]) };
            values.push(node.auto().unwrap());
        }
        for (at, &from) in case.next.iter().enumerate() {
            let next = g.node("Identity").input(&values[from]).output(&format!("next{at}")).unwrap();
            g.output(&next, &ty).unwrap();
            g.bind(format!("s{at}"), &next).unwrap();
        }
        let y = g.node("Neg").input(values.last().unwrap()).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    // proves: R1, K2
    #[test]
    fn a_state_equals_the_manual_feedback_loop(case in case(), keep in any::<bool>(), fail_at in 0usize..8) {
        let session = session(build(&case));
        let initial: Vec<(String, Value)> = (0..case.states)
            .map(|at| (format!("s{at}"), floats(&[3], &[at as f32, 1.0, -1.0]).into()))
            .collect();
        let options = CallOptions::default();
        let state = session.make_state(crate::models::feeds(&initial)).unwrap();
        let mut manual = initial.clone();
        let mut kept = Vec::new();
        for (at, x) in case.xs.iter().enumerate() {
            if at == fail_at {
                // A refused call changes nothing.
                prop_assert!(state.run([("x", floats(&[2], &x[..2]))], &options).is_err());
            }
            let x = floats(&[3], x);
            let out = state.run([("x", x.clone())], &options).unwrap();
            let mut feeds: Feeds<'_> = crate::models::feeds(&manual);
            feeds.push("x", x);
            let functional = session.run(feeds, &options).unwrap();
            for (name, value) in functional.iter() {
                let (a, b) = (elements::<f32>(value), elements::<f32>(&out[name]));
                prop_assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}: {a:?} {b:?}");
            }
            manual = (0..case.states).map(|at| (format!("s{at}"), functional[&*format!("next{at}")].clone())).collect();
            if keep {
                kept.push((out.clone(), out.iter().map(|(_, v)| elements::<f32>(v)).collect::<Vec<_>>()));
            }
        }
        for (out, before) in &kept {
            for ((_, value), before) in out.iter().zip(before) {
                let now = elements::<f32>(value);
                prop_assert!(now.iter().zip(before).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
        prop_assert_eq!(state.report().counts.state_copied_bytes, 0);
    }
}
