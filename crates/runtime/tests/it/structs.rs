//! State in one struct equals state in separate tensors.

use std::sync::Arc;

use heirloom_graph::Model;
use heirloom_mem::DType;
use heirloom_runtime::{CallOptions, State};
use heirloom_types::{StructType, StructValue, Value, ValueType};

use crate::models::{elements, feeds, floats, model_with, session};

const PARTS: usize = 5;

/// A recurrent cell with `PARTS` states: each takes on the sum of itself, its left neighbour and `x`.
fn cell(in_one_struct: bool) -> Arc<Model> {
    model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[3]);
        let x = g.input("x", &ty).unwrap();
        let names: Vec<String> = (0..PARTS).map(|at| format!("s{at}")).collect();
        let mut kind = StructType::structure("Cache").type_id(501);
        for name in &names {
            kind = kind.tensor(name, DType::Float, &[3]);
        }
        let kind = ValueType::Struct(kind.build().unwrap());
        let parts: Vec<_> = if in_one_struct {
            let cache = g.input("cache", &kind).unwrap();
            let fields = names.iter().map(|name| format!("field.{name}")).collect::<Vec<_>>();
            let node = g.node("Unpack").domain("test").input(&cache);
            node.output_list(fields.iter().map(|name| &**name)).unwrap()
        } else {
            names.iter().map(|name| g.input(name, &ty).unwrap()).collect()
        };
        let mut nexts = Vec::new();
        for at in 0..PARTS {
            let left = &parts[(at + PARTS - 1) % PARTS];
            let sum = g.node("Add").input(&parts[at]).input(left).auto().unwrap();
            nexts.push(g.node("Add").input(&sum).input(&x).output(&format!("next{at}")).unwrap());
        }
        let y = g.node("Neg").input(&nexts[0]).output("y").unwrap();
        g.output(&y, &ty).unwrap();
        if in_one_struct {
            let node = g.node("Pack").domain("test").inputs(&nexts);
            let next = node.output("next_cache").unwrap();
            g.output(&next, &kind).unwrap();
            g.bind("cache", &next).unwrap();
        } else {
            for (name, next) in names.iter().zip(&nexts) {
                g.output(next, &ty).unwrap();
                g.bind(name, next).unwrap();
            }
        }
    })
}

fn initial(at: usize) -> Value {
    floats(&[3], &[at as f32, 0.5, -1.0]).into()
}

fn start(in_one_struct: bool) -> State {
    let session = session(cell(in_one_struct));
    if in_one_struct {
        let fields = (0..PARTS).map(|at| (format!("s{at}").into(), initial(at))).collect();
        return session.make_state([("cache", Value::Struct(Arc::new(StructValue { fields })))]).unwrap();
    }
    let values: Vec<_> = (0..PARTS).map(|at| (format!("s{at}"), initial(at))).collect();
    session.make_state(feeds(&values)).unwrap()
}

fn run(state: &State, x: f32) -> Vec<f32> {
    let out = state.run([("x", floats(&[3], &[x, 1.0, 2.0]))], &CallOptions::default()).unwrap();
    elements(&out["y"])
}

// proves: R1, Z1
#[test]
fn u24_a_single_struct_gives_the_same_numbers_as_separate_tensors() {
    let (one, many) = (start(true), start(false));
    for at in 0..20 {
        assert_eq!(run(&one, at as f32), run(&many, at as f32));
    }
    for state in [&one, &many] {
        let counts = state.report().counts;
        assert_eq!((counts.state_copied_bytes, counts.kernel_copied_bytes), (0, 0));
        assert_eq!(state.report().retained_bytes, PARTS as u64 * 12);
    }
}

// proves: R1, Z3
#[test]
fn u22_rewinding_works_for_recurrent_and_struct_state() {
    for in_one_struct in [false, true] {
        let state = start(in_one_struct);
        (0..3).for_each(|at| drop(run(&state, at as f32)));
        let held = state.values().unwrap();
        let first: Vec<_> = (3..6).map(|at| run(&state, at as f32)).collect();
        state.reset(&held).unwrap();
        let second: Vec<_> = (3..6).map(|at| run(&state, at as f32)).collect();
        assert_eq!(first, second);
    }
}

// proves: R7, Z1
#[test]
fn fields_keep_their_buffers_from_call_to_call() {
    let state = start(true);
    run(&state, 1.0);
    let address = |state: &State, field: &str| {
        let values = state.values().unwrap();
        let Some(Value::Struct(cache)) = values.get("cache") else { panic!("a struct") };
        cache.field(field).unwrap().as_tensor().unwrap().address()
    };
    let out = state.run([("x", floats(&[3], &[1.0, 1.0, 2.0]))], &CallOptions::default()).unwrap();
    let Value::Struct(next) = &out["next_cache"] else { panic!("a struct") };
    for (name, value) in &next.fields {
        assert_eq!(address(&state, name), value.as_tensor().unwrap().address());
    }
}
