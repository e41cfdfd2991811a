//! The graph forms in which exporters write caches, beside Attention with past and present.

use std::sync::Arc;

use heirloom_graph::Model;
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{CachePolicy, CallOptions, Session, SessionOptions};
use heirloom_types::Value;

use crate::models::{dims, elements, feeds, float_type, floats, ints, model, session, session_with};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

/// A cache of 32 rows in which TensorScatter writes from `at` on; its rows' sum over all is `y`'s stand-in for a consumer.
fn scatter(circular: bool) -> Arc<Model> {
    model(|g| {
        let ty = float_type(dims(["2", "3", "32", "4"]));
        let past = g.input("cache", &ty).unwrap();
        let x = g.input("x", &float_type(dims(["2", "3", "new", "4"]))).unwrap();
        let at = g.input("at", &heirloom_types::ValueType::tensor(DType::Int64, &[2])).unwrap();
        let mode = if circular { "circular" } else { "linear" };
        let next =
            g.node("TensorScatter").inputs([&past, &x, &at]).attr("mode", mode).output("next").unwrap();
        let y = g.node("Neg").input(&next).output("y").unwrap();
        g.output(&next, &ty).unwrap();
        g.output(&y, &ty).unwrap();
        g.bind(&past, &next).unwrap();
    })
}

fn rows(at: usize, new: usize) -> Tensor {
    floats(&[2, 3, new, 4], &(0..2 * 3 * new * 4).map(|i| (at * 1000 + i) as f32).collect::<Vec<_>>())
}

// proves: K1, K2, Z4
#[test]
fn tensor_scatter_writes_the_new_rows_alone_and_equals_functional_execution() {
    for circular in [false, true] {
        let session = session(scatter(circular));
        let out_of_place = session_with(
            scatter(circular),
            SessionOptions {
                cache: CachePolicy { in_place: false, ..CachePolicy::default() },
                ..SessionOptions::default()
            },
        );
        let initial = floats(&[2, 3, 32, 4], &(0..2 * 3 * 32 * 4).map(|i| -(i as f32)).collect::<Vec<_>>());
        let state = session.make_state([("cache", initial.clone())]).unwrap();
        let other = out_of_place.make_state([("cache", initial.clone())]).unwrap();
        let mut functional: Value = initial.clone().into();
        let mut held = Vec::new();
        let mut before = state.report().counts;
        let mut at = 0;
        for new in [5, 1, 1, 3, 1, 8, 1, 1, 1, 10] {
            let place = ints(&[2], &[at, at]);
            let feeds = || [("x", rows(at as usize, new)), ("at", place.clone())];
            let out = state.run(feeds(), &options()).unwrap();
            let mut all: Vec<(String, Value)> =
                feeds().into_iter().map(|(name, value)| (name.to_string(), value.into())).collect();
            all.push(("cache".into(), functional.clone()));
            let expected = session.run(crate::models::feeds(&all), &options()).unwrap();
            functional = expected["next"].clone();
            for (name, value) in out.iter() {
                assert_eq!(elements::<f32>(value), elements::<f32>(&expected[name]), "{name} at {at}");
            }
            let same = other.run(feeds(), &options()).unwrap();
            assert_eq!(elements::<f32>(&same["next"]), elements::<f32>(&functional));
            let counts = state.report().counts;
            let done = counts - before;
            assert_eq!((done.appended_bytes, done.cache_copied_bytes), (2 * 3 * new as u64 * 16, 0));
            assert_eq!(done.cache_allocations, u64::from(at == 0), "at {at}");
            before = counts;
            held.push((out["next"].clone(), elements::<f32>(&functional)));
            at += new as i64;
        }
        assert_eq!(at, 32);
        for (value, before) in &held {
            assert_eq!(&elements::<f32>(value), before, "earlier views stay");
        }
        assert_eq!(elements::<f32>(&initial.into())[5], -5.0);
        // Samples at different places, and a place beyond the end.
        let feeds = |a: i64, b: i64| [("x", rows(7, 2)), ("at", ints(&[2], &[a, b]))];
        let out = state.run(feeds(3, 9), &options()).unwrap();
        let next: Vec<f32> = elements(&out["next"]);
        assert_eq!((next[3 * 4], next[3 * 32 * 4 + 9 * 4]), (7000.0, 7000.0 + 24.0));
        match circular {
            false => assert!(state.run(feeds(31, 31), &options()).is_err()),
            true => {
                let out = state.run(feeds(31, 31), &options()).unwrap();
                let next: Vec<f32> = elements(&out["next"]);
                assert_eq!((next[31 * 4], next[0]), (7000.0, 7004.0), "round the end");
            }
        }
    }
}

// proves: Z4, K2
#[test]
fn forks_of_a_fixed_cache_do_not_see_each_other() {
    let session = session(scatter(false));
    let state = session.make_state([("cache", rows(0, 32))]).unwrap();
    let run = |state: &heirloom_runtime::State, at: i64, seed: usize| -> Vec<f32> {
        let out = state.run([("x", rows(seed, 1)), ("at", ints(&[2], &[at, at]))], &options()).unwrap();
        elements(&out["next"])
    };
    run(&state, 0, 1);
    let fork = state.fork().unwrap();
    let (a, b) = (run(&state, 1, 2), run(&fork, 1, 3));
    assert_eq!((a[..4].to_vec(), a[4]), (b[..4].to_vec(), 2000.0));
    assert_eq!((b[4], a[8..128].to_vec()), (3000.0, b[8..128].to_vec()));
    assert_eq!(fork.report().counts.cache_copied_bytes, 0);
}

/// Exports that keep keys transposed: `[batch, heads, size, past]`, joined along the last axis.
fn transposed() -> Arc<Model> {
    model(|g| {
        let ty = float_type(dims(["1", "2", "4", "past"]));
        let past = g.input("past_key", &ty).unwrap();
        let k = g.input("k", &float_type(dims(["1", "2", "4", "new"]))).unwrap();
        let q = g.input("q", &float_type(dims(["1", "2", "1", "4"]))).unwrap();
        let next = g.node("Concat").inputs([&past, &k]).attr("axis", -1).output("present_key").unwrap();
        let scores = g.node("MatMul").inputs([&q, &next]).output("scores").unwrap();
        g.output(&scores, &float_type(dims(["1", "2", "1", "total"]))).unwrap();
        g.output(&next, &float_type(dims(["1", "2", "4", "total"]))).unwrap();
        g.bind(&past, &next).unwrap();
    })
}

// proves: K1, K2, K4
#[test]
fn transposed_keys_grow_in_place_too() {
    let session: Session = session(transposed());
    let state = session.make_state(feeds(&session.zeros(&[("past", 0)]).unwrap())).unwrap();
    let mut keys: Vec<Vec<f32>> = vec![Vec::new(); 8];
    for at in 0..50usize {
        let new = 1 + at % 2;
        let k: Vec<f32> = (0..8 * new).map(|i| ((at * 31 + i * 7) % 19) as f32 - 9.0).collect();
        for (row, keys) in keys.iter_mut().enumerate() {
            keys.extend(&k[row * new..(row + 1) * new]);
        }
        let q: Vec<f32> = (0..8).map(|i| (i + at % 3) as f32).collect();
        let feeds = [("k", floats(&[1, 2, 4, new], &k)), ("q", floats(&[1, 2, 1, 4], &q))];
        let before = state.report().counts;
        let out = state.run(feeds, &options()).unwrap();
        let done = state.report().counts - before;
        assert_eq!((done.appended_bytes, done.cache_copied_bytes), (8 * new as u64 * 4, 0));
        let scores: Vec<f32> = elements(&out["scores"]);
        let total = keys[0].len();
        for head in 0..2 {
            for position in 0..total {
                let expected: f32 = (0..4).map(|d| q[head * 4 + d] * keys[head * 4 + d][position]).sum();
                assert_eq!(scores[head * total + position], expected, "head {head}, position {position}");
            }
        }
        assert_eq!(elements::<f32>(&out["present_key"]), keys.concat());
    }
}
