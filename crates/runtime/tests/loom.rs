//! The publication of a state's values under every interleaving of a few threads. The file is the crate's own, with loom's
//! mutex for the standard library's.
#![allow(dead_code)]

mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

#[path = "../src/publication.rs"]
mod publication;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use publication::Publication;

/// Two values that calls change together.
type State = Publication<usize, [usize; 2]>;

/// One call: both values grow by one, or the call finds the state busy or closed.
fn call(state: &State) -> Option<bool> {
    let mut right = state.begin()?;
    *right += 1;
    let past = state.read(|values| *values);
    let Some([a, b]) = past else { return Some(false) };
    let old = state.publish(&right, [a + 1, b + 1]).unwrap();
    assert_eq!(old, [a, b], "nobody published in between");
    Some(true)
}

// proves: R3, R4
#[test]
fn calls_at_the_same_time_publish_one_after_the_other_or_not_at_all() {
    loom::model(|| {
        let state = Arc::new(State::new(0, [7, 7]));
        let done = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (state, done) = (state.clone(), done.clone());
                thread::spawn(move || {
                    if call(&state) == Some(true) {
                        done.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        let seen = state.read(|values| *values).unwrap();
        assert_eq!(seen[0], seen[1], "never half of a call");
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let done = done.load(Relaxed);
        assert!((1..=2).contains(&done));
        assert_eq!(state.read(|values| *values), Some([7 + done; 2]));
    });
}

// proves: R4
#[test]
fn a_state_is_closed_between_calls_and_stays_closed() {
    loom::model(|| {
        let state = Arc::new(State::new(0, [1, 1]));
        let caller = {
            let state = state.clone();
            thread::spawn(move || call(&state))
        };
        let closed = state.begin().is_some_and(|right| state.close(&right).is_some());
        let called = caller.join().unwrap();
        match (closed, called) {
            (true, Some(true)) | (true, Some(false)) | (true, None) => {
                assert_eq!(state.read(|values| *values), None);
                assert_eq!(call(&state), Some(false));
            }
            (false, called) => {
                assert_eq!(called, Some(true), "one of two gets the right");
                assert_eq!(state.read(|values| *values), Some([2, 2]));
            }
        }
    });
}
