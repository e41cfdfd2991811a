//! One request's values from call to call.

use std::sync::Arc;

use heirloom_graph::{Model, ModelBuilder};
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{CallOptions, CancelToken, Feeds, RunError, Session, State, StateError};
use heirloom_types::{StringTensor, StructType, StructValue, Value, ValueType};

use crate::models::{
    accumulator, decoder, dims, elements, empty, feeds, float_type, floats, ints, model, model_with, session,
    shape, step,
};
use crate::test_kernels::{await_arrival, open};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

fn x(a: f32, b: f32) -> Feeds<'static> {
    Feeds::new().with("x", floats(&[2], &[a, b]))
}

fn zero_state(session: &Session) -> State {
    session.make_state([("s", floats(&[2], &[0.0, 0.0]))]).unwrap()
}

// proves: R1
#[test]
fn u1_state_advances_with_each_call() {
    let session = session(accumulator());
    let state = zero_state(&session);
    for expected in [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]] {
        let out = state.run(x(1.0, 2.0), &options()).unwrap();
        assert_eq!(elements::<f32>(&out["y"]), expected);
    }
    assert_eq!(elements::<f32>(state.values().unwrap().get("s").unwrap()), [3.0, 6.0]);
}

// proves: R2
#[test]
fn wrong_names_are_refused_by_name() {
    let session = session(accumulator());
    let error = session.make_state(Feeds::new()).unwrap_err();
    assert_eq!(error.to_string(), "missing initial values for `s`");
    let both = [("s", floats(&[2], &[0.0, 0.0])), ("x", floats(&[2], &[0.0, 0.0]))];
    let error = session.make_state(both).unwrap_err();
    assert_eq!(error.to_string(), "`x` is not persistent; the persistent inputs are `s`");
    let error = session.make_state([("s", floats(&[3], &[0.0; 3]))]).unwrap_err();
    assert_eq!(error.to_string(), "initial value of `s`: expected shape [2], got [3]");
    let state = zero_state(&session);
    let error = state
        .run([("x", floats(&[2], &[1.0, 2.0])), ("s", floats(&[2], &[1.0, 2.0]))], &options())
        .unwrap_err();
    assert!(matches!(&error, RunError::FeedsRetained { name } if name == "s"), "{error}");
    let error = state.run(Feeds::new(), &options()).unwrap_err();
    let RunError::MissingFeeds { missing, known } = &error else { panic!("{error}") };
    assert_eq!((&missing[..], &known[..]), (&["x".to_string()][..], &["x".to_string()][..]));
    let error = state.run([("y", floats(&[2], &[1.0, 2.0]))], &options()).unwrap_err();
    assert!(matches!(&error, RunError::UnknownFeeds { unknown, .. } if unknown[..] == ["y"]), "{error}");
    let out = state.run(x(1.0, 2.0), &options()).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [1.0, 2.0]);
}

#[test]
fn a_model_without_bindings_has_no_state() {
    let model = model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("x", &ty).unwrap();
        let y = g.node("Neg").input(&x).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    });
    let error = session(model).make_state(Feeds::new()).unwrap_err();
    assert!(matches!(error, StateError::Stateless), "{error}");
}

// proves: R1, Z1
#[test]
fn each_call_reads_the_very_buffer_that_the_call_before_wrote() {
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let seen = g.node("Identity").input(&s).output("seen").unwrap();
        let next = g.node("Add").input(&x).input(&s).output("s_next").unwrap();
        g.output(&seen, &ty).unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let at = |value: &Value| value.as_tensor().unwrap().address();
    let initial = floats(&[2], &[0.0, 0.0]);
    let state = session.make_state([("s", initial.clone())]).unwrap();
    assert_eq!(at(state.values().unwrap().get("s").unwrap()), initial.address());
    let first = state.run(x(1.0, 2.0), &options()).unwrap();
    assert_eq!(at(&first["seen"]), initial.address());
    assert_eq!(at(&first["s_next"]), at(state.values().unwrap().get("s").unwrap()));
    let second = state.run(x(1.0, 2.0), &options()).unwrap();
    assert_eq!(at(&second["seen"]), at(&first["s_next"]));
    state.reset([("s", initial.clone())]).unwrap();
    let third = state.run(x(1.0, 2.0), &options()).unwrap();
    assert_eq!(at(&third["seen"]), initial.address());
    assert_eq!(state.report().counts.state_copied_bytes, 0);
    assert_eq!(state.report().counts.kernel_copied_bytes, 0);
    // What the caller kept is as it was.
    assert_eq!(elements::<f32>(&first["s_next"]), [1.0, 2.0]);
    assert_eq!(elements::<f32>(&second["s_next"]), [2.0, 4.0]);
}

// proves: R3, K3
#[test]
fn u17_failed_step_leaves_state_untouched() {
    let session = session(decoder(2, DType::Float));
    let run = |state: &State, layers: [i64; 2]| {
        let ids = [("id.0", ints(&[1, 1], &[layers[0]])), ("id.1", ints(&[1, 1], &[layers[1]]))];
        state.run(ids, &options())
    };
    let never_failed = session.make_state(feeds(&empty(&session))).unwrap();
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    for id in 1..4 {
        run(&never_failed, [id, id]).unwrap();
        run(&state, [id, id]).unwrap();
    }
    let before = state.values().unwrap();
    let bytes: Vec<Vec<f32>> = before.iter().map(|(_, value)| elements(value)).collect();
    // Layer 1 has appended when layer 2 finds no row 32.
    let error = run(&state, [4, 32]).unwrap_err();
    assert!(matches!(&error, RunError::Node { node, .. } if node == "embed.1"), "{error}");
    for ((_, value), bytes) in state.values().unwrap().iter().zip(&bytes) {
        assert_eq!(shape(value), [1, 2, 3, 8]);
        assert_eq!(&elements::<f32>(value), bytes);
    }
    let appended = state.report().counts.appended_bytes;
    let retried = run(&state, [4, 4]).unwrap();
    let straight = run(&never_failed, [4, 4]).unwrap();
    assert_eq!(elements::<f32>(&retried["y"]), elements::<f32>(&straight["y"]));
    for ((_, value), bytes) in before.iter().zip(&bytes) {
        assert_eq!(&elements::<f32>(value), bytes);
    }
    let counts = state.report().counts;
    // The retry took the rows that the failed call had taken, in place.
    assert_eq!((counts.state_copied_bytes, counts.cache_copied_bytes), (0, 0));
    assert_eq!(counts.appended_bytes - appended, 2 * 2 * 2 * 8 * 4);
}

// proves: R3, R8
#[test]
fn a_call_cancelled_between_two_appends_leaves_no_trace() {
    let model = model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let g = builder.graph();
        let cache = float_type(dims(["1", "past", "2"]));
        let (a, b) = (g.input("a", &cache).unwrap(), g.input("b", &cache).unwrap());
        let x = g.input("x", &ValueType::tensor(DType::Float, &[1, 1, 2])).unwrap();
        let total = float_type(dims(["1", "total", "2"]));
        let a_next = g.node("Concat").input(&a).input(&x).attr("axis", 1).output("a_next").unwrap();
        let gate = g.node("CancelIfNegative").domain("test").name("stop").input(&x).input(&x).auto().unwrap();
        let b_next = g.node("Concat").input(&b).input(&gate).attr("axis", 1).output("b_next").unwrap();
        for (from, to) in [(&a, &a_next), (&b, &b_next)] {
            g.output(to, &total).unwrap();
            g.bind(from, to).unwrap();
        }
    });
    let session = session(model);
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    let run = |v: f32| {
        let token = CancelToken::new();
        let x = [("x", floats(&[1, 1, 2], &[v, v]))];
        state.run(x, &CallOptions { cancel: Some(&token), ..options() })
    };
    run(1.0).unwrap();
    let error = run(-2.0).unwrap_err();
    assert!(matches!(&error, RunError::Cancelled { node } if node == "stop"), "{error}");
    let out = run(3.0).unwrap();
    for name in ["a_next", "b_next"] {
        assert_eq!(elements::<f32>(&out[name]), [1.0, 1.0, 3.0, 3.0]);
    }
    assert_eq!(state.report().counts.cache_copied_bytes, 0);
}

// proves: R3
#[test]
fn retained_values_are_validated_before_they_are_published() {
    let session = session(model(|g| {
        let x = g.input("x", &float_type(dims(["n"]))).unwrap();
        let s = g.input("s", &ValueType::tensor(DType::Float, &[2])).unwrap();
        let next = g.node("Concat").input(&x).attr("axis", 0).output("s_next").unwrap();
        let y = g.node("Neg").input(&s).output("y").unwrap();
        g.output(&next, &float_type(dims(["m"]))).unwrap();
        g.output(&y, &ValueType::tensor(DType::Float, &[2])).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let state = session.make_state([("s", floats(&[2], &[1.0, 2.0]))]).unwrap();
    let error = state.run([("x", floats(&[3], &[0.0; 3]))], &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "output `s_next` cannot be retained for input `s`: expected shape [2], got [3]"
    );
    assert_eq!(elements::<f32>(state.values().unwrap().get("s").unwrap()), [1.0, 2.0]);
    let out = state.run([("x", floats(&[2], &[5.0, 6.0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [-1.0, -2.0]);
    let out = state.run([("x", floats(&[2], &[0.0, 0.0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [-5.0, -6.0]);
}

fn gated(name: &str) -> Arc<Model> {
    model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let slow = g.node("Gate").domain("test").name(name).input(&x).auto().unwrap();
        let next = g.node("Add").input(&slow).input(&s).output("s_next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    })
}

// proves: R4, Z3
#[test]
fn u19_reset_close_and_a_second_call_during_a_call_are_refused_at_once() {
    let session = session(gated("u19"));
    let state = zero_state(&session);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| state.run(x(1.0, 2.0), &options()));
        await_arrival("u19");
        assert!(matches!(state.reset([("s", floats(&[2], &[9.0, 9.0]))]), Err(StateError::Busy)));
        assert!(matches!(state.close(), Err(StateError::Busy)));
        assert!(matches!(state.truncate(0), Err(StateError::Busy)));
        assert!(matches!(state.run(x(1.0, 2.0), &options()), Err(RunError::Busy)));
        // Looking is always allowed, and shows the state before the call.
        assert_eq!(elements::<f32>(state.values().unwrap().get("s").unwrap()), [0.0, 0.0]);
        let fork = state.fork().unwrap();
        open("u19");
        let out = running.join().unwrap().unwrap();
        assert_eq!(elements::<f32>(&out["s_next"]), [1.0, 2.0]);
        assert_eq!(elements::<f32>(fork.values().unwrap().get("s").unwrap()), [0.0, 0.0]);
        state.close().unwrap();
        state.close().unwrap();
        assert!(state.is_closed());
        assert!(matches!(state.run(x(1.0, 2.0), &options()), Err(RunError::Closed)));
        assert!(matches!(state.values(), Err(StateError::Closed)));
        assert!(matches!(state.fork().map(|_| ()), Err(StateError::Closed)));
        assert!(matches!(state.reset([("s", floats(&[2], &[9.0, 9.0]))]), Err(StateError::Closed)));
        assert_eq!(elements::<f32>(&out["s_next"]), [1.0, 2.0]);
    });
}

// proves: R4
#[test]
fn u20_one_session_serves_many_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let session = session(accumulator());
    shared(&session);
    let state = zero_state(&session);
    shared(&state);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let session = session.clone();
            scope.spawn(move || {
                let state = zero_state(&session);
                for step in 1..=50 {
                    let v = (thread * step) as f32;
                    let out = session
                        .run([("x", floats(&[2], &[v, 1.0])), ("s", floats(&[2], &[0.5, 0.5]))], &options())
                        .unwrap();
                    assert_eq!(elements::<f32>(&out["y"]), [v + 0.5, 1.5]);
                    let out = state.run(x(thread as f32, 1.0), &options()).unwrap();
                    assert_eq!(elements::<f32>(&out["y"]), [(thread * step) as f32, step as f32]);
                }
            });
        }
    });
}

// proves: R4
#[test]
fn two_states_are_isolated() {
    let session = session(accumulator());
    let (a, b) = (zero_state(&session), session.make_state([("s", floats(&[2], &[100.0, 100.0]))]).unwrap());
    for _ in 0..3 {
        a.run(x(1.0, 1.0), &options()).unwrap();
        b.run(x(-1.0, -1.0), &options()).unwrap();
    }
    assert_eq!(elements::<f32>(a.values().unwrap().get("s").unwrap()), [3.0, 3.0]);
    assert_eq!(elements::<f32>(b.values().unwrap().get("s").unwrap()), [97.0, 97.0]);
}

// proves: R1, Z3, Z4
#[test]
fn u22_rewinding_to_held_values_repeats_the_same_bits() {
    let session = session(decoder(1, DType::Float));
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    let logits = |id: i64| elements::<f32>(&state.run(feeds(&step(1, &[id])), &options()).unwrap()["y"]);
    (1..=3).for_each(|id| drop(logits(id)));
    let held = state.values().unwrap();
    let first: Vec<_> = (4..=6).map(logits).collect();
    let at_six = state.values().unwrap();
    let sixth: Vec<Vec<f32>> = at_six.iter().map(|(_, value)| elements(value)).collect();
    state.reset(&held).unwrap();
    let second: Vec<_> = (4..=6).map(logits).collect();
    assert_eq!(first, second);
    for ((_, value), before) in at_six.iter().zip(&sixth) {
        assert_eq!(&elements::<f32>(value), before);
    }
    assert_eq!(state.report().counts.state_copied_bytes, 0);
}

/// `count` FLOAT[1, 4] states, each of which takes on `x` plus its old value.
fn many(count: usize) -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1, 4]);
        let x = g.input("x", &ty).unwrap();
        for at in 0..count {
            let s = g.input(&format!("state.{at}"), &ty).unwrap();
            let next = g.node("Add").input(&x).input(&s).output(&format!("next.{at}")).unwrap();
            g.output(&next, &ty).unwrap();
            g.bind(&s, &next).unwrap();
        }
    })
}

// proves: R2
#[test]
fn u24_ninety_seven_states_need_one_feed() {
    let session = session(many(97));
    assert_eq!(session.state_spec().len(), 97);
    let mut initial = session.zeros(&[]).unwrap();
    let state = session.make_state(feeds(&initial)).unwrap();
    let other = session.make_state(feeds(&initial)).unwrap();
    for run in 1..=3u8 {
        let feed = || Feeds::new().with("x", floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]));
        let out = state.run(feed(), &CallOptions { outputs: Some(&["next.96"]), ..options() }).unwrap();
        let twin = other.run(feed(), &CallOptions { outputs: Some(&["next.96"]), ..options() }).unwrap();
        let expected = [1.0, 2.0, 3.0, 4.0].map(|v: f32| v * f32::from(run));
        assert_eq!(elements::<f32>(&out["next.96"]), expected);
        assert_eq!(elements::<f32>(&twin["next.96"]), expected);
    }
    let fed = [("x", floats(&[1, 4], &[0.0; 4])), ("state.40", floats(&[1, 4], &[0.0; 4]))];
    assert!(
        matches!(state.run(fed, &options()), Err(RunError::FeedsRetained { name }) if name == "state.40")
    );
    initial.remove(40);
    let error = session.make_state(feeds(&initial)).unwrap_err();
    assert_eq!(error.to_string(), "missing initial values for `state.40`");
}

// proves: R3
#[test]
fn u51_wrong_chunk_size_is_refused_before_execution() {
    let session = session(model(|g| {
        let chunk = ValueType::tensor(DType::Float, &[1, 576]);
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("input", &chunk).unwrap();
        let s = g.input("s", &ty).unwrap();
        let axes = g.vector("axes", vec![1i64]).unwrap();
        let mean = g.node("ReduceMean").input(&x).input(&axes).attr("keepdims", 0).auto().unwrap();
        let next = g.node("Add").input(&mean).input(&s).output("s_next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let state = session.make_state([("s", floats(&[1], &[1.0]))]).unwrap();
    let error = state.run([("input", floats(&[1, 512], &[0.0; 512]))], &options()).unwrap_err();
    assert_eq!(error.to_string(), "input `input`: expected shape [1, 576], got [1, 512]");
    assert_eq!(elements::<f32>(state.values().unwrap().get("s").unwrap()), [1.0]);
    state.run([("input", floats(&[1, 576], &[2.0; 576]))], &options()).unwrap();
    assert_eq!(elements::<f32>(state.values().unwrap().get("s").unwrap()), [3.0]);
}

// proves: Z3
#[test]
fn u53_outputs_outlive_state_session_and_model() {
    let session = session(decoder(1, DType::Float));
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    let kept = state.run(feeds(&step(1, &[3])), &options()).unwrap();
    let before: Vec<Vec<f32>> = kept.iter().map(|(_, value)| elements(value)).collect();
    for id in 0..10 {
        state.run(feeds(&step(1, &[id])), &options()).unwrap();
    }
    state.close().unwrap();
    drop(state);
    drop(session);
    for ((_, value), before) in kept.iter().zip(&before) {
        assert_eq!(&elements::<f32>(value), before);
    }
}

// proves: Z1
#[test]
fn u55_looking_at_the_state_costs_nothing() {
    let big = Tensor::from_vec(&[1, 16 << 20], vec![1.0f32; 16 << 20]).unwrap();
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1, 16 << 20]);
        let s = g.input("s", &ty).unwrap();
        let x = g.input("x", &ValueType::tensor(DType::Float, &[1])).unwrap();
        let y = g.node("Neg").input(&x).output("y").unwrap();
        let next = g.node("Identity").input(&s).output("s_next").unwrap();
        g.output(&y, &ValueType::tensor(DType::Float, &[1])).unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let state = session.make_state([("s", big.clone())]).unwrap();
    state.run([("x", floats(&[1], &[1.0]))], &options()).unwrap();
    let start = std::time::Instant::now();
    for _ in 0..1000 {
        let values = state.values().unwrap();
        assert_eq!(values.get("s").unwrap().as_tensor().unwrap().address(), big.address());
    }
    assert!(start.elapsed().as_millis() < 10, "{:?}", start.elapsed());
    let report = state.report();
    assert_eq!((report.counts.state_copied_bytes, report.retained_bytes), (0, 64 << 20));
}

// proves: R6
#[test]
fn outputs_that_are_not_bound_are_not_retained() {
    let session = session(accumulator());
    let state = zero_state(&session);
    let out = state.run(x(1.0, 2.0), &options()).unwrap();
    assert_eq!(state.values().unwrap().iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["s"]);
    assert_eq!(state.report().retained_bytes, 8);
    let y = out["y"].as_tensor().unwrap().region_id();
    drop(out);
    // The buffer of `y` is free again: the next call takes it.
    let out = state.run(x(1.0, 2.0), &options()).unwrap();
    let regions = ["y", "s_next"].map(|name| out[name].as_tensor().unwrap().region_id());
    assert!(regions.contains(&y));
}

#[test]
fn what_the_caller_holds_is_never_written_over() {
    let session = session(accumulator());
    let state = zero_state(&session);
    let held: Vec<_> = (0..20).map(|_| state.run(x(1.0, 2.0), &options()).unwrap()).collect();
    for (step, out) in held.iter().enumerate() {
        let n = (step + 1) as f32;
        assert_eq!(elements::<f32>(&out["y"]), [n, 2.0 * n]);
        assert_eq!(elements::<f32>(&out["s_next"]), [n, 2.0 * n]);
    }
}

fn struct_session() -> Session {
    let cache = StructType::structure("Cache")
        .typed("keys", float_type(dims(["n", "2"])))
        .field("length", DType::Int64)
        .type_id(77)
        .build()
        .unwrap();
    let ty = ValueType::Struct(cache);
    session(model(|g| {
        let cache = g.input("cache", &ty).unwrap();
        let next = g.node("Identity").input(&cache).output("next_cache").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&cache, &next).unwrap();
    }))
}

fn cache_value(keys: Value, length: i64) -> Value {
    let fields = vec![("keys".into(), keys), ("length".into(), Tensor::scalar(length).into())];
    Value::Struct(Arc::new(StructValue { fields }))
}

// proves: R1, R3, Z1
#[test]
fn a_whole_struct_is_retained_without_touching_its_fields() {
    let session = struct_session();
    let keys = floats(&[3, 2], &[1.0; 6]);
    let state = session.make_state([("cache", cache_value(keys.clone().into(), 3))]).unwrap();
    for _ in 0..3 {
        let out = state.run(Feeds::new(), &options()).unwrap();
        let Value::Struct(cache) = &out["next_cache"] else { panic!("a struct") };
        assert_eq!(cache.field("keys").unwrap().as_tensor().unwrap().address(), keys.address());
        assert_eq!(elements::<i64>(cache.field("length").unwrap()), [3]);
    }
    assert_eq!(state.report().counts.state_copied_bytes, 0);
    let error = state.reset([("cache", cache_value(floats(&[3, 3], &[0.0; 9]).into(), 3))]).unwrap_err();
    assert_eq!(error.to_string(), "initial value of `cache`: at `keys`: expected shape [n, 2], got [3, 3]");
    let error = session.make_state([("cache", keys)]).unwrap_err();
    assert_eq!(error.to_string(), "initial value of `cache`: expected a struct, got a tensor");
}

// proves: B2, R3
#[test]
fn strings_are_refused_wherever_they_hide() {
    let any =
        StructType::structure("Box").typed("items", ValueType::sequence(ValueType::AnyStruct)).type_id(78);
    let ty = ValueType::Struct(any.build().unwrap());
    let session = session(model(|g| {
        let s = g.input("s", &ty).unwrap();
        let next = g.node("Identity").input(&s).output("next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    }));
    let inner = |value: Value| {
        let item = Value::Struct(Arc::new(StructValue { fields: vec![("label".into(), value)] }));
        let items = Value::Sequence(Arc::new(vec![item]));
        Value::Struct(Arc::new(StructValue { fields: vec![("items".into(), items)] }))
    };
    session.make_state([("s", inner(floats(&[1], &[1.0]).into()))]).unwrap();
    let text = StringTensor { shape: smallvec::smallvec![1], elements: vec![b"x".to_vec().into()] };
    let error = session.make_state([("s", inner(Value::Strings(Arc::new(text))))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "initial value of `s`: at `items`: at `0`: at `label`: strings cannot be retained"
    );
}

// proves: B1
#[test]
fn names_with_dots_are_whole_names() {
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1]);
        let a = g.input("past.k", &ty).unwrap();
        let b = g.input("past", &ty).unwrap();
        let next = g.node("Add").input(&a).input(&b).output("present.k").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&a, &next).unwrap();
    }));
    let state = session.make_state([("past.k", floats(&[1], &[1.0]))]).unwrap();
    let out = state.run([("past", floats(&[1], &[2.0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["present.k"]), [3.0]);
}

// proves: B4
#[test]
fn two_inputs_of_one_type_may_have_different_bindings() {
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1]);
        let kept = g.input("kept", &ty).unwrap();
        let fresh = g.input("fresh", &ty).unwrap();
        let next = g.node("Add").input(&kept).input(&fresh).output("next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&kept, &next).unwrap();
    }));
    let state = session.make_state([("kept", floats(&[1], &[1.0]))]).unwrap();
    state.run([("fresh", floats(&[1], &[2.0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(state.values().unwrap().get("kept").unwrap()), [3.0]);
}

#[test]
fn zeros_need_the_extents_of_symbols() {
    let session = session(decoder(1, DType::Float16));
    let spec = session.state_spec();
    assert_eq!((&*spec[0].input, &*spec[0].output), ("past.0.key", "present.0.key"));
    let error = session.zeros(&[]).unwrap_err();
    assert_eq!(error.to_string(), "`past.0.key` needs the extent of dimension `past`; give it one");
    let zeros = session.zeros(&[("past", 3)]).unwrap();
    assert_eq!(shape(&zeros[1].1), [1, 2, 3, 8]);
    assert!(elements::<half::f16>(&zeros[1].1).iter().all(|v| v.to_f32() == 0.0));
}

// proves: R5
#[test]
fn the_session_keeps_its_model_alive() {
    let model = accumulator();
    let weak = Arc::downgrade(&model);
    let session = session(model);
    let state = zero_state(&session);
    drop(session);
    assert!(weak.upgrade().is_some());
    state.run(x(1.0, 2.0), &options()).unwrap();
    drop(state);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_wrong_binding_is_refused_when_the_model_is_made() {
    let mut builder = ModelBuilder::new("test");
    builder.opset("", 24).unwrap();
    let g = builder.graph();
    let ty = ValueType::tensor(DType::Float, &[2]);
    let x = g.input("x", &ty).unwrap();
    let y = g.node("Neg").input(&x).output("y").unwrap();
    g.output(&y, &ty).unwrap();
    let error = g.bind("x", "state").unwrap_err().to_string();
    assert!(error.contains("`state`") && error.contains("`y`"), "{error}");
}
