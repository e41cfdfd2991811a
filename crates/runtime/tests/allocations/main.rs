//! What a call in steady state takes from the heap. A binary of its own, because it counts all allocations of the
//! process: its tests run one after another.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

#[path = "../it/models.rs"]
#[allow(dead_code)]
mod models;
#[path = "../it/test_kernels.rs"]
#[allow(dead_code)]
mod test_kernels;

use std::sync::Mutex;

use heirloom_mem::{CountingAlloc, DType, heap_allocations, heap_live_bytes};
use heirloom_runtime::{CallOptions, Feeds};
use heirloom_types::ValueType;
use models::{decoder, empty, feeds, floats, model, session, step};

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The smallest of ten measurements: the harness's own threads allocate now and then.
fn quietest(measure: impl FnMut(usize) -> u64) -> u64 {
    (0..10).map(measure).min().unwrap()
}

// proves: K1, Z1
#[test]
fn a_decoding_step_allocates_nothing() {
    let _alone = alone();
    let session = session(decoder(4, DType::Float16));
    let options = CallOptions { outputs: Some(&["y"]), ..CallOptions::default() };
    let ids = step(4, &[7]);
    let taken = quietest(|_| {
        let state = session.make_state(feeds(&empty(&session))).unwrap();
        // From here to 128 rows the portable attention's scratch stays in its size classes.
        state.run(feeds(&step(4, &[1; 113])), &options).unwrap();
        state.run(feeds(&ids), &options).unwrap();
        let mut taken = 0;
        for _ in 0..12 {
            let inputs = feeds(&ids);
            let before = heap_allocations();
            let out = state.run(inputs, &options).unwrap();
            drop(out);
            taken += heap_allocations() - before;
        }
        taken
    });
    assert_eq!(taken, 0);
}

// proves: R5
#[test]
fn the_cost_of_a_call_does_not_grow_with_the_number_of_initializers() {
    let _alone = alone();
    let taken = |initializers: usize| {
        let session = session(model(|g| {
            let ty = ValueType::tensor(DType::Float, &[2]);
            let x = g.input("x", &ty).unwrap();
            let s = g.input("s", &ty).unwrap();
            for at in 0..initializers {
                g.initializer(&format!("w{at}"), &floats(&[2], &[0.0, 0.0])).unwrap();
            }
            let next = g.node("Add").input(&x).input(&s).output("next").unwrap();
            g.output(&next, &ty).unwrap();
            g.bind(&s, &next).unwrap();
        }));
        let state = session.make_state([("s", floats(&[2], &[0.0, 0.0]))]).unwrap();
        let x = floats(&[2], &[1.0, 1.0]);
        let run = || drop(state.run(Feeds::new().with("x", x.clone()), &CallOptions::default()).unwrap());
        (0..5).for_each(|_| run());
        quietest(|_| {
            let before = heap_allocations();
            (0..10).for_each(|_| run());
            heap_allocations() - before
        })
    };
    assert_eq!((taken(0), taken(1000)), (0, 0));
}

// proves: O4
#[test]
fn closing_states_gives_their_memory_back() {
    let _alone = alone();
    let session = session(decoder(2, DType::Float));
    let options = CallOptions::default();
    let round = || {
        let states: Vec<_> = (0..8).map(|_| session.make_state(feeds(&empty(&session))).unwrap()).collect();
        for id in 0..20 {
            for state in &states {
                state.run(feeds(&step(2, &[id])), &options).unwrap();
            }
        }
        states.iter().for_each(|state| state.close().unwrap());
    };
    round();
    session.trim();
    let before = heap_live_bytes();
    (0..5).for_each(|_| round());
    session.trim();
    // The harness keeps a few notes on its own tests meanwhile.
    let after = heap_live_bytes();
    assert!(after <= before + 4096, "{before} {after}");
}

/// Bytes of the process that lie in memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

// proves: O4
#[test]
fn five_thousand_calls_of_varying_length_leave_memory_as_it_was_at_call_500() {
    let _alone = alone();
    let session = session(decoder(1, DType::Float));
    let options = CallOptions { outputs: Some(&["y"]), ..CallOptions::default() };
    let (mut scratch, mut live, mut resident) = (0, 0, 0);
    // One state goes on and is begun anew now and then, as a conversation is; others last for one call.
    let mut long = session.make_state(feeds(&empty(&session))).unwrap();
    for call in 0..5000usize {
        let length = 1 + call * 7919 % 61;
        let ids: Vec<i64> = (0..length as i64).map(|id| id % 32).collect();
        let state = session.make_state(feeds(&empty(&session))).unwrap();
        state.run(feeds(&step(1, &ids)), &options).unwrap();
        drop(state);
        long.run(feeds(&step(1, &[1, 2, 3][..1 + length % 3])), &options).unwrap();
        if call % 50 == 49 {
            long = session.make_state(feeds(&empty(&session))).unwrap();
        }
        if call == 500 {
            (scratch, live, resident) = (session.report().scratch_bytes, heap_live_bytes(), resident_bytes());
        }
    }
    let room = |before: u64| before + before / 20;
    let (at_end, now) = (session.report().scratch_bytes, resident_bytes());
    assert!(scratch > 0 && at_end <= room(scratch), "scratch: {scratch} {at_end}");
    assert!(now <= room(resident), "resident: {resident} {now}");
    assert!(heap_live_bytes() <= room(live), "live: {live} {}", heap_live_bytes());
}
