//! Alone in its process, because it measures the process's threads.
#![allow(missing_docs)]

use std::time::Duration;

use heirloom_cpu::ClaimTeam;
use heirloom_runtime::Team;

/// Processor time of the team's workers so far, in ticks of 10 ms.
fn worker_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this system tells its threads' times");
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
        .filter(|stat| stat.contains("(heirloom-"))
        .map(|stat| {
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn an_idle_team_burns_no_processor_time() {
    let team = ClaimTeam::with_spin(3, Duration::from_micros(500));
    team.run(8, &|_| {});
    std::thread::sleep(Duration::from_millis(50));
    let before = worker_ticks();
    std::thread::sleep(Duration::from_millis(500));
    // Two spinning workers would take up to 100.
    assert!(worker_ticks() - before <= 1);
    assert_eq!(team.threads(), 3);
}
