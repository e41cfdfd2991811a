//! Failures and cancellations at every point of a call.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heirloom_mem::{DType, Element};
use heirloom_runtime::{
    BuildCx, BuildError, CallOptions, CancelToken, Kernel, KernelError, KernelRegistry, KernelSpec, RunCx,
    RunError, Session, SessionOptions, State,
};
use heirloom_types::ValueType;

use crate::models::{decoder, dims, elements, empty, feeds, float_type, floats, model, session, step};

thread_local! {
    /// Points that this thread's kernels still pass before one fails; `None` is never.
    static COUNTDOWN: Cell<Option<u32>> = const { Cell::new(None) };
    /// Whether the failure is a cancellation.
    static CANCEL: Cell<bool> = const { Cell::new(false) };
}

/// Called before and after each kernel.
fn point(cx: &RunCx<'_>) -> Result<(), KernelError> {
    match COUNTDOWN.get() {
        None => Ok(()),
        Some(0) => {
            COUNTDOWN.set(None);
            if CANCEL.get() {
                cx.cancel().cancel();
                cx.cancel().check()?;
            }
            Err(KernelError::Other("injected".into()))
        }
        Some(left) => {
            COUNTDOWN.set(Some(left - 1));
            Ok(())
        }
    }
}

/// A kernel of the table with a point before and after it.
struct Fragile(Box<dyn Kernel>);

impl Kernel for Fragile {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        point(cx)?;
        self.0.run(cx)?;
        point(cx)
    }
}

/// `Attention` that claims rows of its caches, writes half of them and fails where its point says so.
struct HalfAppended(Box<dyn Kernel>);

impl Kernel for HalfAppended {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if COUNTDOWN.get() == Some(0) {
            let mut slot = cx.append(4, 2, 1)?;
            slot.run_mut(0).into_iter().for_each(|part| part.fill(0x7f));
        }
        point(cx)?;
        self.0.run(cx)?;
        point(cx)
    }
}

fn plain() -> KernelRegistry {
    KernelRegistry::new().with(heirloom_ops::KERNELS.iter().copied())
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let registry = plain();
    let inner = (registry.choose(cx).expect("a kernel of the table").build)(cx)?;
    Ok(match &*cx.node.op_type {
        "Attention" => Box::new(HalfAppended(inner)),
        _ => Box::new(Fragile(inner)),
    })
}

/// All kernels of the table, fragile.
fn fragile() -> KernelRegistry {
    let wrap = |spec: &KernelSpec| KernelSpec { rank: 100, build, ..*spec };
    KernelRegistry::new().with(heirloom_ops::KERNELS.iter().map(wrap))
}

fn prepared(session: &Session, layers: usize) -> State {
    let state = session.make_state(feeds(&empty(session))).unwrap();
    state.run(feeds(&step(layers, &[1, 2, 3])), &CallOptions::default()).unwrap();
    state
}

fn bits<T: Element>(state: &State) -> Vec<Vec<T>> {
    state.values().unwrap().iter().map(|(_, value)| elements::<T>(value)).collect()
}

// proves: R3, R8, K3
#[test]
fn u17_a_failure_at_any_point_leaves_the_state_and_the_next_call_as_if_it_had_not_been() {
    let session = Session::new(decoder(2, DType::Float), &fragile(), SessionOptions::default()).unwrap();
    let straight = prepared(&session, 2);
    let before = bits::<f32>(&straight);
    let expected = straight.run(feeds(&step(2, &[4, 5])), &CallOptions::default()).unwrap();
    let after = bits::<f32>(&straight);
    for cancel in [false, true] {
        let mut points = 0;
        loop {
            let state = prepared(&session, 2);
            let token = CancelToken::new();
            let options = CallOptions { cancel: Some(&token), ..CallOptions::default() };
            COUNTDOWN.set(Some(points));
            CANCEL.set(cancel);
            let result = state.run(feeds(&step(2, &[4, 5])), &options);
            if COUNTDOWN.take().is_some() {
                result.unwrap();
                break;
            }
            match result.unwrap_err() {
                RunError::Cancelled { .. } if cancel => {}
                RunError::Node { source, .. } if !cancel => assert_eq!(source.to_string(), "injected"),
                error => panic!("{error}"),
            }
            assert_eq!(bits::<f32>(&state), before, "point {points}");
            let counts = state.report().counts;
            assert_eq!((counts.state_copied_bytes, counts.cache_copied_bytes), (0, 0), "point {points}");
            let out = state.run(feeds(&step(2, &[4, 5])), &CallOptions::default()).unwrap();
            for (name, value) in expected.iter() {
                assert_eq!(elements::<f32>(&out[name]), elements::<f32>(value), "point {points}, `{name}`");
            }
            assert_eq!(bits::<f32>(&state), after, "point {points}");
            // The rows that the failed call took were given back.
            assert_eq!(state.report().counts.cache_allocations, 4, "point {points}");
            points += 1;
        }
        // Before and after each of Cast, 2 × (Gather, Attention), Add and Neg.
        assert_eq!(points, 14);
    }
}

// proves: R8
#[test]
fn a_long_kernel_does_one_piece_of_its_work_at_most_after_the_token_is_used() {
    let n = 256;
    let session = session(model(|g| {
        let ty = ValueType::tensor(DType::Float, &[n, n]);
        let a = g.input("a", &ty).unwrap();
        let product = g.node("MatMul").name("long").input(&a).input(&a).output("c").unwrap();
        g.output(&product, &ty).unwrap();
    }));
    let a = floats(&[n, n], &vec![1.0; n * n]);
    // The kernel looks at the token before each piece of its work: how often, where it is used at look `at`?
    let looks = |at: usize| {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let token = CancelToken::new();
        let used = token.clone();
        let token = token.with_probe(move || {
            if counted.fetch_add(1, Relaxed) == at {
                used.cancel();
            }
            false
        });
        let options = CallOptions { cancel: Some(&token), ..CallOptions::default() };
        let result = session.run([("a", a.clone())], &options);
        (result, count.load(Relaxed))
    };
    let (result, all) = looks(usize::MAX);
    assert_eq!(elements::<f32>(&result.unwrap()["c"])[0], n as f32);
    assert!(all > 20, "{all} looks at a long kernel");
    for at in [1, all / 2, all - 2] {
        let (result, seen) = looks(at);
        assert!(matches!(result, Err(RunError::Cancelled { node }) if node == "long"), "used at look {at}");
        assert_eq!(seen, at + 1, "pieces after the token was used");
    }
}

// proves: R4, Z4
#[test]
fn sixteen_threads_with_forks_and_failures_do_not_disturb_each_other() {
    let session = session(decoder(2, DType::Float16));
    let root = prepared(&session, 2);
    let options = CallOptions { outputs: Some(&["y"]), ..CallOptions::default() };
    let run = |state: &State, id: i64| {
        elements::<half::f16>(&state.run(feeds(&step(2, &[id])), &options).unwrap()["y"])
    };
    let expected: Vec<Vec<Vec<half::f16>>> = (0..16)
        .map(|thread| {
            let state = prepared(&session, 2);
            (0..24).map(|at| run(&state, (thread * 3 + at) % 32)).collect()
        })
        .collect();
    std::thread::scope(|scope| {
        for (thread, expected) in (0..16).zip(&expected) {
            let (root, options, run) = (&root, &options, &run);
            scope.spawn(move || {
                let mut state = root.fork().unwrap();
                for (at, expected) in (0..24).zip(expected) {
                    if at % 5 == 2 {
                        assert!(state.run(feeds(&step(2, &[99])), options).is_err());
                    }
                    if at % 7 == 3 {
                        state = state.fork().unwrap();
                    }
                    assert_eq!(&run(&state, (thread * 3 + at) % 32), expected, "thread {thread}, step {at}");
                }
                assert_eq!(state.report().counts.state_copied_bytes, 0);
            });
        }
    });
    assert_eq!(bits::<half::f16>(&root), bits::<half::f16>(&prepared(&session, 2)));
}

// proves: R3
#[test]
fn a_kernel_that_panics_takes_only_its_call_along() {
    struct Panics;
    impl Kernel for Panics {
        fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            assert!(cx.slice::<f32>(0)?[0] >= 0.0, "the test's panic");
            let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
            cx.set(0, value);
            Ok(())
        }
    }
    let spec = KernelSpec {
        domain: "",
        op: "Abs",
        versions: (1, 99),
        // Before the operator's own kernel.
        rank: 1,
        accepts: |_| true,
        build: |_| Ok(Box::new(Panics)),
    };
    let model = model(|g| {
        let ty = float_type(dims(["2"]));
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let sum = g.node("Add").input(&x).input(&s).auto().unwrap();
        let next = g.node("Abs").input(&sum).output("next").unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    });
    let session = Session::new(model, &plain().with([spec]), SessionOptions::default()).unwrap();
    let state = session.make_state([("s", floats(&[2], &[1.0, 1.0]))]).unwrap();
    let run = |v: f32| state.run([("x", floats(&[2], &[v, v]))], &CallOptions::default());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(-5.0)));
    assert!(caught.is_err());
    assert_eq!(elements::<f32>(&run(1.0).unwrap()["next"]), [2.0, 2.0]);
}
