//! The team's hand-off under every interleaving of a caller and a worker. The file is the crate's own, with loom's atomics
//! and cell for the standard library's.
#![allow(dead_code, unsafe_code)]

mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

#[path = "../src/team/handoff.rs"]
mod handoff;

use handoff::Handoff;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Team {
    handoff: Handoff<usize>,
    /// What the tasks of each region write: loom fails where two threads do at once, or the caller reads too early.
    results: Vec<UnsafeCell<usize>>,
}

impl Team {
    fn work(&self) {
        while let Some((task, job)) = self.handoff.claim() {
            // SAFETY: each task has a cell of its own; loom checks it.
            self.results[task].with_mut(|to| unsafe { *to = job + task });
            self.handoff.finish();
        }
    }
}

// proves: R4
#[test]
fn each_task_of_each_region_runs_once_before_the_region_ends_and_sleepers_are_woken() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let results = (0..2).map(|_| UnsafeCell::new(0)).collect();
        let team = Arc::new(Team { handoff: Handoff::new(), results });
        let worker = {
            let team = team.clone();
            thread::spawn(move || {
                let mut seen = 0;
                while !team.handoff.is_stopped() {
                    let epoch = team.handoff.epoch();
                    if epoch != seen {
                        seen = epoch;
                        team.work();
                    }
                    team.handoff.sleep(seen, thread::park);
                }
            })
        };
        for region in 1..=2u64 {
            // SAFETY: this thread alone opens regions, and waits for each.
            if unsafe { team.handoff.open(region, 2, region as usize * 10) } {
                worker.thread().unpark();
            }
            team.work();
            while !team.handoff.is_over(2) {
                thread::yield_now();
            }
            for (task, result) in team.results.iter().enumerate() {
                // SAFETY: the region is over; loom checks it.
                assert_eq!(result.with(|from| unsafe { *from }), region as usize * 10 + task);
            }
        }
        team.handoff.stop();
        worker.thread().unpark();
        worker.join().unwrap();
    });
}
