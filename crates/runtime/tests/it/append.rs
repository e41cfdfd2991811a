//! Caches that grow in place.

use heirloom_mem::{ClaimError, DType};
use heirloom_runtime::{CachePolicy, CallOptions, KernelError, RunError, Session, SessionOptions, State};
use heirloom_types::Value;

use crate::models::{
    decoder, dims, elements, empty, feeds, float_type, floats, model, session, session_with, shape, step,
};

fn options() -> CallOptions<'static> {
    CallOptions { outputs: Some(&["y"]), ..CallOptions::default() }
}

fn with_cache(layers: usize, dtype: DType, reserve: usize, growth: Option<f32>) -> Session {
    let cache = CachePolicy { reserve, growth, ..CachePolicy::default() };
    session_with(decoder(layers, dtype), SessionOptions { cache, ..SessionOptions::default() })
}

fn out_of_place(layers: usize, dtype: DType) -> Session {
    let cache = CachePolicy { in_place: false, ..CachePolicy::default() };
    session_with(decoder(layers, dtype), SessionOptions { cache, ..SessionOptions::default() })
}

fn start(session: &Session) -> State {
    session.make_state(feeds(&empty(session))).unwrap()
}

// proves: K1, Z1
#[test]
fn u6_each_token_writes_its_own_bytes_alone() {
    let session = with_cache(2, DType::Float, 2048, None);
    let state = start(&session);
    let mut before = state.report().counts;
    for token in 0..2048 {
        state.run(feeds(&step(2, &[token % 32])), &options()).unwrap();
        let counts = state.report().counts;
        let done = counts - before;
        assert_eq!(done.appended_bytes, 2 * 2 * 2 * 8 * 4, "token {token}");
        assert_eq!(done.cache_allocations, if token == 0 { 4 } else { 0 }, "token {token}");
        before = counts;
    }
    assert_eq!((before.state_copied_bytes, before.cache_copied_bytes), (0, 0));
    let report = state.report();
    assert_eq!((report.retained_bytes, report.reserved_bytes), (2048 * 256, 2048 * 256));
}

// proves: K2
#[test]
fn u49_the_present_is_one_longer_than_the_past() {
    for past in [0, 1, 2, 16] {
        let session = session(decoder(1, DType::Float));
        let state = session.make_state(feeds(&session.zeros(&[("past", past)]).unwrap())).unwrap();
        let all = CallOptions::default();
        let out = state.run(feeds(&step(1, &[5])), &all).unwrap();
        assert_eq!(shape(&out["present.0.key"]), [1, 2, past + 1, 8]);
        let stateless = session.zeros(&[("past", past)]).unwrap();
        let mut inputs = step(1, &[5]);
        inputs.extend(stateless);
        let functional = session.run(feeds(&inputs), &all).unwrap();
        for (name, value) in out.iter() {
            assert_eq!(elements::<f32>(value), elements::<f32>(&functional[name]), "{name}");
        }
    }
}

// proves: K2
#[test]
fn u10_an_empty_first_cache_is_an_ordinary_value() {
    let session = session(decoder(1, DType::Float));
    let state = start(&session);
    let all = CallOptions::default();
    let out = state.run(feeds(&step(1, &[1, 2, 3])), &all).unwrap();
    assert_eq!(shape(&out["present.0.key"]), [1, 2, 3, 8]);
    let out = state.run(feeds(&step(1, &[4])), &all).unwrap();
    assert_eq!(shape(&out["present.0.key"]), [1, 2, 4, 8]);
}

// proves: K2, K1
#[test]
fn u47_capacity_never_shows_in_the_shape() {
    let (large, exact) = (with_cache(1, DType::Float16, 2048, Some(2.0)), out_of_place(1, DType::Float16));
    let (a, b) = (start(&large), start(&exact));
    let all = CallOptions::default();
    for token in 0..7 {
        let ids = step(1, &[token]);
        let (a, b) = (a.run(feeds(&ids), &all).unwrap(), b.run(feeds(&ids), &all).unwrap());
        assert_eq!(shape(&a["present.0.value"]), [1, 2, token as usize + 1, 8]);
        for (name, value) in a.iter() {
            assert_eq!(elements::<half::f16>(value), elements::<half::f16>(&b[name]), "{name}");
        }
    }
    // Out of place each token moves the cache; the results are the same.
    assert_eq!(a.report().counts.cache_copied_bytes, 0);
    assert!(b.report().counts.cache_copied_bytes > 0);
    assert_eq!(a.report().retained_bytes, 2 * 2 * 7 * 8 * 2);
    assert_eq!(a.report().reserved_bytes, 2 * 2 * 2048 * 8 * 2);
}

// proves: K3
#[test]
fn u59_a_full_cache_of_fixed_capacity_refuses_and_keeps_what_it_has() {
    let session = with_cache(1, DType::Float, 4, None);
    let state = start(&session);
    state.run(feeds(&step(1, &[1, 2, 3])), &options()).unwrap();
    let before = state.values().unwrap();
    let bytes: Vec<Vec<f32>> = before.iter().map(|(_, value)| elements(value)).collect();
    let error = state.run(feeds(&step(1, &[4, 5])), &options()).unwrap_err();
    let RunError::Node { node, source, .. } = &error else { panic!("{error}") };
    assert_eq!(node, "attention.0");
    let full = ClaimError::Full { len: 3, rows: 2, capacity: 4 };
    assert!(matches!(&**source, KernelError::Claim(claim) if *claim == full), "{source}");
    for ((_, value), bytes) in state.values().unwrap().iter().zip(&bytes) {
        assert_eq!(shape(value), [1, 2, 3, 8]);
        assert_eq!(&elements::<f32>(value), bytes);
    }
    state.run(feeds(&step(1, &[4])), &options()).unwrap();
    assert!(state.run(feeds(&step(1, &[5])), &options()).is_err());
    // More than the capacity in one call.
    let fresh = start(&session);
    let error = fresh.run(feeds(&step(1, &[1, 2, 3, 4, 5])), &options()).unwrap_err();
    assert!(error.to_string().contains("holds 0 of 4 rows, 5 more do not fit"), "{error}");
}

// proves: Z4, K2, O4
#[test]
fn two_forks_from_one_point_do_not_see_each_other() {
    let session = session(decoder(2, DType::BFloat16));
    let state = start(&session);
    state.run(feeds(&step(2, &[1, 2, 3])), &options()).unwrap();
    let fork = state.fork().unwrap();
    let run = |state: &State, ids: &[i64]| -> Vec<Vec<half::bf16>> {
        ids.iter().map(|&id| elements(&state.run(feeds(&step(2, &[id])), &options()).unwrap()["y"])).collect()
    };
    let straight = |ids: &[i64]| {
        let state = start(&session);
        state.run(feeds(&step(2, &[1, 2, 3])), &options()).unwrap();
        run(&state, ids)
    };
    let (a, b) = (run(&state, &[4, 5, 6]), run(&fork, &[7, 8, 9]));
    let (c, d) = (run(&state, &[10]), run(&fork, &[11]));
    assert_eq!([a, c].concat(), straight(&[4, 5, 6, 10]));
    assert_eq!([b, d].concat(), straight(&[7, 8, 9, 11]));
    // Not even the loser of the race copied the prefix.
    for counts in [state.report().counts, fork.report().counts] {
        assert_eq!((counts.state_copied_bytes, counts.cache_copied_bytes), (0, 0));
    }
}

// proves: K1, K2, Z4
#[test]
fn forks_from_any_point_share_their_prefix_and_equal_functional_execution_to_the_bit() {
    let session = session(decoder(2, DType::Float16));
    let prefix: Vec<i64> = (0..40).map(|at| at * 3 % 32).collect();
    let state = start(&session);
    let mut points = Vec::new();
    for &id in &prefix {
        points.push(state.fork().unwrap());
        state.run(feeds(&step(2, &[id])), &options()).unwrap();
    }
    let prefix_bytes: u64 = state.report().retained_bytes;
    let last = |ids: &[i64]| -> Vec<half::f16> {
        let fresh = start(&session);
        let y: Vec<half::f16> = elements(&fresh.run(feeds(&step(2, ids)), &options()).unwrap()["y"]);
        y[y.len() - 16..].to_vec()
    };
    let mut appended = 0;
    for (at, fork) in points.iter().enumerate().step_by(7) {
        let mut ids = prefix[..at].to_vec();
        for id in [31, 30] {
            ids.push(id);
            let y: Vec<half::f16> = elements(&fork.run(feeds(&step(2, &[id])), &options()).unwrap()["y"]);
            assert_eq!(y, last(&ids), "fork at {at}");
        }
        // Forks of forks, from the same point, one after the other.
        let (one, two) = (fork.fork().unwrap(), fork.fork().unwrap());
        for (state, id) in [(&one, 29), (&two, 28)] {
            let y: Vec<half::f16> = elements(&state.run(feeds(&step(2, &[id])), &options()).unwrap()["y"]);
            assert_eq!(y, last(&[&ids[..], &[id]].concat()), "fork of the fork at {at}");
        }
        for fork in [fork, &one, &two] {
            let counts = fork.report().counts;
            assert_eq!((counts.cache_copied_bytes, counts.state_copied_bytes), (0, 0));
            appended += counts.appended_bytes;
        }
    }
    assert_eq!(appended, 6 * 4 * (2 * 2 * 2 * 8 * 2), "each wrote its own rows alone");
    assert_eq!(state.report().retained_bytes, prefix_bytes);
}

// proves: K1
#[test]
fn many_forks_one_behind_the_other_are_moved_to_one_buffer_now_and_then() {
    let session = session(decoder(1, DType::Float));
    let mut state = start(&session);
    let mut ids = Vec::new();
    let mut moved = 0;
    let mut rivals = Vec::new();
    for at in 0..100i64 {
        let next = state.fork().unwrap();
        state.run(feeds(&step(1, &[31])), &options()).unwrap();
        rivals.push(state);
        let id = at % 32;
        next.run(feeds(&step(1, &[id])), &options()).unwrap();
        ids.push(id);
        let copied = next.report().counts.cache_copied_bytes;
        assert!(copied == 0 || copied == 2 * 2 * at as u64 * 8 * 4);
        moved += u64::from(copied > 0);
        state = next;
    }
    assert_eq!(moved, 3);
    let y: Vec<f32> = elements(&state.run(feeds(&step(1, &[5])), &options()).unwrap()["y"]);
    ids.push(5);
    let whole: Vec<f32> = elements(&start(&session).run(feeds(&step(1, &ids)), &options()).unwrap()["y"]);
    assert_eq!(y, whole[whole.len() - 16..]);
}

// proves: K1, Z1
#[test]
fn a_dense_initial_cache_stays_where_it_is_and_grows_behind() {
    let session = session(decoder(1, DType::Float));
    let rows: Vec<f32> = (0..2 * 5 * 8).map(|i| i as f32 / 50.0).collect();
    let past = floats(&[1, 2, 5, 8], &rows);
    let state = session.make_state([("past.0.key", past.clone()), ("past.0.value", past.clone())]).unwrap();
    for id in [1, 2, 3] {
        state.run(feeds(&step(1, &[id])), &options()).unwrap();
        let retained = state.values().unwrap();
        for (_, value) in retained.iter() {
            assert_eq!(
                value.as_tensor().unwrap().address(),
                past.address(),
                "its first rows lie there still"
            );
        }
    }
    let counts = state.report().counts;
    assert_eq!((counts.cache_copied_bytes, counts.state_copied_bytes), (0, 0));
    let retained = state.values().unwrap();
    let key: Vec<f32> = elements(retained.get("past.0.key").unwrap());
    assert_eq!((&key[..40], &key[64..104]), (&rows[..40], &rows[40..]));
    assert_eq!(elements::<f32>(&past.into()), rows);
}

// proves: K1, K2
#[test]
fn growth_without_room_takes_a_further_segment_and_copies_nothing() {
    let (small, large) = (with_cache(1, DType::Float, 3, Some(1.5)), with_cache(1, DType::Float, 4096, None));
    let (a, b) = (start(&small), start(&large));
    for id in 0..60 {
        let ids = step(1, &[id % 32]);
        let (a, b) = (a.run(feeds(&ids), &options()).unwrap(), b.run(feeds(&ids), &options()).unwrap());
        assert_eq!(elements::<f32>(&a["y"]), elements::<f32>(&b["y"]), "token {id}");
    }
    let counts = a.report().counts;
    assert_eq!(counts.cache_copied_bytes, 0);
    // 3, then to 1.5 times what is needed: 6, 10, 16, 25, 39, 60 rows, keys and values.
    assert_eq!(counts.cache_allocations, 2 * 7);
    assert_eq!(a.report().reserved_bytes, 60 * 2 * 2 * 8 * 4);
}

// proves: K3
#[test]
fn impossible_cache_policies_are_refused_when_the_session_is_made() {
    let model = decoder(1, DType::Float);
    let registry = crate::models::registry();
    for (cache, fault) in [
        (CachePolicy::fixed(0), "`reserve` is 0"),
        (CachePolicy { growth: Some(0.5), ..CachePolicy::default() }, "`growth` is 0.5"),
        (CachePolicy { growth: Some(f32::NAN), ..CachePolicy::default() }, "`growth` is NaN"),
        (CachePolicy { growth: Some(f32::INFINITY), ..CachePolicy::default() }, "`growth` is inf"),
    ] {
        let options = SessionOptions { cache, ..SessionOptions::default() };
        let error = Session::new(model.clone(), &registry, options).unwrap_err().to_string();
        assert!(error.contains("cache policy") && error.contains(fault), "{error}");
    }
    // Sizes that overflow and capacities below what there is are errors of the call; the state stays.
    let session = with_cache(1, DType::Float, usize::MAX / 2, None);
    let state = start(&session);
    let error = state.run(feeds(&step(1, &[1])), &options()).unwrap_err().to_string();
    assert!(error.contains("cannot be made"), "{error}");
    let session = with_cache(1, DType::Float, 4, None);
    let state = session.make_state(feeds(&session.zeros(&[("past", 6)]).unwrap())).unwrap();
    let error = state.run(feeds(&step(1, &[1])), &options()).unwrap_err().to_string();
    assert!(error.contains("holds 6 of 4 rows"), "{error}");
    assert_eq!(shape(state.values().unwrap().get("past.0.key").unwrap()), [1, 2, 6, 8]);
    // A capacity that a longer state brought along is no way round it.
    let long = with_cache(1, DType::Float, 64, None);
    let state = start(&long);
    state.run(feeds(&step(1, &[1, 2, 3, 4])), &options()).unwrap();
    let moved = session.make_state(&state.values().unwrap()).unwrap();
    assert!(moved.run(feeds(&step(1, &[1])), &options()).unwrap_err().to_string().contains("4 of 4 rows"));
}

/// `window_next = the last 10 rows of Concat(window, x)`, U3's first-in-first-out buffer with rows of 3 in 2 runs.
fn fifo() -> std::sync::Arc<heirloom_graph::Model> {
    model(|g| {
        let ty = float_type(dims(["2", "10", "3"]));
        let window = g.input("window", &ty).unwrap();
        let x = g.input("x", &float_type(dims(["2", "new", "3"]))).unwrap();
        let all = g.node("Concat").input(&window).input(&x).attr("axis", 1).output("all").unwrap();
        let [start, end, axis] = [-10, i64::MAX, 1].map(|value| g.vector("bound", vec![value]).unwrap());
        let next = g.node("Slice").inputs([&all, &start, &end, &axis]).output("window_next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&window, &next).unwrap();
    })
}

// proves: K1, Z4, R1
#[test]
fn a_sliding_window_moves_round_a_ring_and_windows_that_are_held_stay() {
    let cache = CachePolicy::fixed(16);
    let session = session_with(fifo(), SessionOptions { cache, ..SessionOptions::default() });
    let state = session.make_state(feeds(&session.zeros(&[]).unwrap())).unwrap();
    let mut expected = [vec![0.0f32; 30], vec![0.0; 30]];
    let mut held: Vec<(Value, Vec<f32>)> = Vec::new();
    for at in 0..200 {
        let new = 1 + at % 5;
        let values: Vec<f32> = (0..2 * new * 3).map(|i| (at * 100 + i) as f32).collect();
        for (run, rows) in expected.iter_mut().enumerate() {
            rows.extend_from_slice(&values[run * new * 3..(run + 1) * new * 3]);
            rows.drain(..new * 3);
        }
        let out = state.run([("x", floats(&[2, new, 3], &values))], &CallOptions::default()).unwrap();
        assert_eq!(elements::<f32>(&out["window_next"]), expected.concat(), "step {at}");
        match at {
            60 | 61 | 130 => held.push((out["window_next"].clone(), expected.concat())),
            100 => held.clear(),
            _ => {}
        }
        for (window, rows) in &held {
            assert_eq!(&elements::<f32>(window), rows, "at step {at}");
        }
    }
    let counts = state.report().counts;
    assert_eq!(counts.state_copied_bytes, 0);
    let steady = state.report().counts;
    drop(held);
    for _ in 0..50 {
        state.run([("x", floats(&[2, 1, 3], &[1.0; 6]))], &CallOptions::default()).unwrap();
    }
    let done = state.report().counts - steady;
    assert!(done.cache_allocations <= 1, "{done:?}");
    assert_eq!(done.appended_bytes, 50 * 2 * 3 * 4, "each step writes its own rows alone");
}

// proves: K2, Z4
#[test]
fn truncating_drops_the_last_rows_and_appends_over_them_in_place() {
    let session = session(decoder(1, DType::Float));
    let (state, twin) = (start(&session), start(&session));
    state.run(feeds(&step(1, &[1, 2, 3, 4, 5])), &options()).unwrap();
    twin.run(feeds(&step(1, &[1, 2])), &options()).unwrap();
    assert!(state.truncate(6).is_err());
    state.truncate(2).unwrap();
    assert_eq!(shape(state.values().unwrap().get("past.0.key").unwrap()), [1, 2, 2, 8]);
    for id in [9, 8] {
        let a = state.run(feeds(&step(1, &[id])), &options()).unwrap();
        let b = twin.run(feeds(&step(1, &[id])), &options()).unwrap();
        assert_eq!(elements::<f32>(&a["y"]), elements::<f32>(&b["y"]));
    }
    assert_eq!(state.report().counts.cache_copied_bytes, 0);
    let fresh = start(&session);
    let error = fresh.truncate(0).unwrap_err().to_string();
    assert!(error.contains("did not grow by appending"), "{error}");
}

// proves: Z4, Z3
#[test]
fn a_view_that_the_caller_holds_is_not_written_over_after_a_rewind() {
    let session = session(decoder(1, DType::Float));
    let state = start(&session);
    state.run(feeds(&step(1, &[1, 2, 3])), &options()).unwrap();
    let held = state.values().unwrap();
    let before: Vec<Vec<f32>> = held.iter().map(|(_, value)| elements(value)).collect();
    state.truncate(1).unwrap();
    for id in 10..14 {
        state.run(feeds(&step(1, &[id])), &options()).unwrap();
    }
    for ((_, value), before) in held.iter().zip(&before) {
        assert_eq!(&elements::<f32>(value), before);
    }
    // The held rows stand where the new ones would go: the cache moved, once for keys and once for values.
    assert_eq!(state.report().counts.cache_allocations, 4);
}

// proves: K4, K1
#[test]
fn a_cache_kept_by_concat_grows_in_place_too() {
    let session = session(model(|g| {
        let past = g.input("past", &float_type(dims(["2", "past", "3"]))).unwrap();
        let x = g.input("x", &float_type(dims(["2", "new", "3"]))).unwrap();
        let next = g.node("Concat").input(&past).input(&x).attr("axis", 1).output("present").unwrap();
        g.output(&next, &float_type(dims(["2", "total", "3"]))).unwrap();
        g.bind(&past, &next).unwrap();
    }));
    let state = session.make_state(feeds(&session.zeros(&[("past", 0)]).unwrap())).unwrap();
    let mut rows: [Vec<f32>; 2] = Default::default();
    let mut region = None;
    for at in 0..40 {
        let new = 1 + at % 3;
        let values: Vec<f32> = (0..2 * new * 3).map(|i| (at * 100 + i) as f32).collect();
        for (run, rows) in rows.iter_mut().enumerate() {
            rows.extend_from_slice(&values[run * new * 3..(run + 1) * new * 3]);
        }
        state.run([("x", floats(&[2, new, 3], &values))], &CallOptions::default()).unwrap();
        let retained = state.values().unwrap();
        let cache = retained.get("past").unwrap();
        assert_eq!(elements::<f32>(cache), rows.concat());
        let now = cache.as_tensor().unwrap().region_id();
        assert_eq!(*region.get_or_insert(now), now);
    }
    let counts = state.report().counts;
    assert_eq!((counts.state_copied_bytes, counts.cache_copied_bytes), (0, 0));
    assert_eq!(counts.appended_bytes, state.report().retained_bytes);
}

// proves: K1
#[test]
fn u57_reading_the_cache_costs_what_it_holds_not_what_it_could_hold() {
    let steps = |capacity: usize| {
        let session = with_cache(1, DType::Float, capacity, None);
        let state = start(&session);
        state.run(feeds(&step(1, &[0, 1, 2, 3, 4, 5, 6, 7, 8])), &options()).unwrap();
        state.run(feeds(&step(1, &[9])), &options()).unwrap();
        let values = state.values().unwrap();
        let mut seen = 0;
        for (_, value) in values.iter() {
            value.as_tensor().unwrap().for_each_run(|run| seen += run.len());
        }
        seen
    };
    assert_eq!(steps(64), steps(4096));
    assert_eq!(steps(64), 2 * 2 * 10 * 8 * 4);
}

// proves: K3
#[test]
fn u64_thousands_of_steps_with_resets_forks_and_failures_stay_right() {
    let session = session(decoder(1, DType::Float));
    let state = start(&session);
    let mut reference: Vec<i64> = Vec::new();
    let mut held: Vec<(Value, Vec<f32>)> = Vec::new();
    let mut other = None;
    for at in 0..20_000i64 {
        let id = at * 7 % 32;
        match at % 97 {
            13 => assert!(state.run(feeds(&step(1, &[77])), &options()).is_err()),
            29 => {
                state.reset(feeds(&empty(&session))).unwrap();
                reference.clear();
            }
            41 => other = Some(state.fork().unwrap()),
            57 => {
                let keep = reference.len() / 2;
                if !reference.is_empty() {
                    state.truncate(keep).unwrap();
                    reference.truncate(keep);
                }
            }
            _ => {}
        }
        let out = state.run(feeds(&step(1, &[id])), &options()).unwrap();
        reference.push(id);
        if let Some(other) = other.as_ref().filter(|_| at % 5 == 0) {
            other.run(feeds(&step(1, &[(id + 1) % 32])), &options()).unwrap();
        }
        if at % 501 == 0 {
            let fresh = start(&session);
            let functional = fresh.run(feeds(&step(1, &reference)), &options()).unwrap();
            let whole = elements::<f32>(&functional["y"]);
            assert_eq!(elements::<f32>(&out["y"]), whole[whole.len() - 16..], "step {at}");
            let value = state.values().unwrap().get("past.0.key").unwrap().clone();
            held.push((value.clone(), elements(&value)));
        }
    }
    for (value, before) in &held {
        assert_eq!(&elements::<f32>(value), before);
    }
    assert_eq!(state.report().counts.state_copied_bytes, 0);
}
