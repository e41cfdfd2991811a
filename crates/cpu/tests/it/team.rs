//! The team of threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heirloom_cpu::ClaimTeam;
use heirloom_runtime::Team;

#[test]
fn every_task_runs_exactly_once_whatever_the_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        let team = ClaimTeam::new(threads);
        for tasks in [0, 1, 2, 7, 100, 5000] {
            let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            team.run(tasks, &|task| {
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(
                counts.iter().all(|c| c.load(Ordering::Relaxed) == 1),
                "{threads} threads, {tasks} tasks"
            );
        }
    }
}

#[test]
fn regions_follow_each_other_without_losing_or_repeating_work() {
    let team = ClaimTeam::with_spin(4, Duration::from_micros(20));
    let total = AtomicUsize::new(0);
    for region in 0..20_000 {
        team.run(region % 5, &|task| {
            total.fetch_add(task + 1, Ordering::Relaxed);
        });
    }
    assert_eq!(total.into_inner(), 20_000 / 5 * (1 + 3 + 6 + 10));
}

#[test]
fn parked_workers_wake_for_the_next_region() {
    let team = ClaimTeam::with_spin(3, Duration::ZERO);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(1));
        let done = AtomicUsize::new(0);
        team.run(64, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), 64);
    }
}

#[test]
fn callers_at_the_same_time_and_regions_within_regions_all_finish() {
    let team = ClaimTeam::new(2);
    let total = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    team.run(3, &|_| {
                        team.run(2, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 4 * 200 * 3 * 2);
}

#[test]
fn a_task_that_panics_ends_the_region_with_a_panic_and_leaves_the_team_usable() {
    let team = ClaimTeam::new(2);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        team.run(10, &|task| assert_ne!(task, 5));
    }));
    assert!(outcome.is_err());
    let done = AtomicUsize::new(0);
    team.run(10, &|_| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(done.into_inner(), 10);
}
