//! A resident team of threads that claims tasks from one atomic word.
//!
//! Between regions the workers spin for a while, so that a region costs well under a microsecond to start; then
//! they park, so that an idle session burns no processor time. Tasks are claimed, never assigned: when a worker
//! loses its core, the others and the caller do what it has not claimed. What it has claimed must be waited for, so a
//! caller that had to wait much longer than it worked goes on alone for a while: on a machine that another program
//! keeps busy, that is faster than to share.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use heirloom_runtime::Team;

/// How long a worker looks for work before it parks.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(500);

/// A wait of less is no sign of a lost core.
const STALL: Duration = Duration::from_micros(300);
/// How long the caller works alone after a first stall, and at most after one that follows another.
const ALONE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(128)];

type Job = *const (dyn Fn(usize) + Sync);

/// Where tasks are claimed: bits 40.. epoch, bits 20..40 the region's task count, bits 0..20 the next task.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Claim(u64);

impl Claim {
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;

    fn new(epoch: u64, tasks: u64) -> Claim {
        Claim(epoch << (2 * Self::BITS) | tasks << Self::BITS)
    }

    fn next(self) -> Option<usize> {
        let next = self.0 & Self::MASK;
        (next < self.0 >> Self::BITS & Self::MASK).then_some(next as usize)
    }

    fn epoch(self) -> u64 {
        self.0 >> (2 * Self::BITS)
    }
}

struct Shared {
    claim: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    done: AtomicUsize,
    panicked: AtomicBool,
    parked: AtomicU32,
    stop: AtomicBool,
    spin: Duration,
}

// SAFETY: `job` is written by the one caller that holds the region lock, while no task is unclaimed or running,
// and read only by holders of a claimed task of that region (see `work`).
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is used only between the start and the end of the region that borrowed it.
unsafe impl Send for Shared {}

impl Shared {
    /// Claims and runs tasks until none is left to claim.
    fn work(&self) {
        loop {
            let word = self.claim.load(Ordering::Acquire);
            let Some(task) = Claim(word).next() else { return };
            if self.claim.compare_exchange_weak(word, word + 1, Ordering::AcqRel, Ordering::Relaxed).is_err()
            {
                continue;
            }
            // SAFETY: the exchange succeeded, so `task` is a task of the region that is now open, and that
            // region's caller cannot return (nor write `job`) before this task has been counted as done.
            let job = unsafe { *self.job.get() }.expect("an open region has a job");
            // SAFETY: the caller keeps the closure alive until all tasks are done.
            let f = unsafe { &*job };
            if catch_unwind(AssertUnwindSafe(|| f(task))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    fn worker(&self) {
        let mut seen = 0;
        loop {
            let started = Instant::now();
            let mut turns = 0u32;
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let claim = Claim(self.claim.load(Ordering::Acquire));
                if claim.epoch() != seen {
                    seen = claim.epoch();
                    self.work();
                    break;
                }
                turns = turns.wrapping_add(1);
                std::hint::spin_loop();
                if turns & 0xff == 0 && started.elapsed() > self.spin {
                    self.park(seen);
                    break;
                }
            }
        }
    }

    /// Parks until a region after `seen` opens. Counting itself in before looking again, while the caller opens
    /// the region before it looks at the count, makes sure that one of the two sees the other.
    fn park(&self, seen: u64) {
        self.parked.fetch_add(1, Ordering::SeqCst);
        while Claim(self.claim.load(Ordering::SeqCst)).epoch() == seen && !self.stop.load(Ordering::SeqCst) {
            thread::park();
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the caller of the present region knows of earlier ones.
struct Regions {
    epoch: u64,
    /// Until then the caller works alone.
    alone: Option<Instant>,
    /// How long that will be after the next stall.
    penalty: Duration,
    last_stall: Option<Instant>,
}

/// Threads that work through the tasks of one region at a time; see the module's text.
pub struct ClaimTeam {
    shared: Arc<Shared>,
    region: Mutex<Regions>,
    workers: Vec<JoinHandle<()>>,
    handles: Vec<Thread>,
}

impl ClaimTeam {
    /// A team of `threads` threads, the caller's included (at least 1).
    pub fn new(threads: usize) -> ClaimTeam {
        ClaimTeam::with_spin(threads, DEFAULT_SPIN)
    }

    /// A team whose workers look for work for `spin` before they park.
    pub fn with_spin(threads: usize, spin: Duration) -> ClaimTeam {
        let shared = Arc::new(Shared {
            claim: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            done: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            parked: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            spin,
        });
        let workers: Vec<_> = (1..threads.max(1))
            .filter_map(|i| {
                let shared = shared.clone();
                // A system that gives no more threads leaves a smaller team, not an error.
                thread::Builder::new().name(format!("heirloom-{i}")).spawn(move || shared.worker()).ok()
            })
            .collect();
        let handles = workers.iter().map(|w| w.thread().clone()).collect();
        let regions = Regions { epoch: 0, alone: None, penalty: ALONE[0], last_stall: None };
        ClaimTeam { shared, region: Mutex::new(regions), workers, handles }
    }

    /// The processors that this process may use now: its affinity mask and cgroup limit are respected.
    pub fn available() -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn region(&self, regions: &mut Regions, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if let Some(until) = regions.alone {
            if Instant::now() < until {
                return (0..tasks).for_each(f);
            }
            regions.alone = None;
        }
        let shared = &*self.shared;
        regions.epoch = (regions.epoch + 1) & (u64::MAX >> (2 * Claim::BITS));
        // SAFETY: only the lifetime is erased; the region ends before this function returns.
        let job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(f) };
        shared.done.store(0, Ordering::Relaxed);
        // SAFETY: the region lock is held and the last region is over, so nobody reads `job` now.
        unsafe { *shared.job.get() = Some(job) };
        let started = Instant::now();
        shared.claim.store(Claim::new(regions.epoch, tasks as u64).0, Ordering::SeqCst);
        if shared.parked.load(Ordering::SeqCst) > 0 {
            self.handles.iter().for_each(Thread::unpark);
        }
        shared.work();
        if shared.done.load(Ordering::Acquire) < tasks {
            self.wait(regions, tasks, started);
        }
        if shared.panicked.swap(false, Ordering::Relaxed) {
            panic!("a task of the region panicked");
        }
    }

    /// Waits for the tasks that others have claimed.
    fn wait(&self, regions: &mut Regions, tasks: usize, started: Instant) {
        let waiting = Instant::now();
        let mut turns = 0u32;
        while self.shared.done.load(Ordering::Acquire) < tasks {
            turns += 1;
            if turns < 4096 {
                std::hint::spin_loop();
            } else {
                // A worker with a claimed task may have lost its core: leave it this one.
                thread::yield_now();
            }
        }
        if turns < 4096 {
            return;
        }
        let now = Instant::now();
        if now - waiting < STALL.max(2 * (waiting - started)) {
            return;
        }
        let calm = regions.last_stall.is_none_or(|last| now - last > 4 * ALONE[1]);
        regions.penalty = if calm { ALONE[0] } else { (2 * regions.penalty).min(ALONE[1]) };
        regions.last_stall = Some(now);
        regions.alone = Some(now + regions.penalty);
    }
}

impl Team for ClaimTeam {
    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if tasks > 1 && !self.workers.is_empty() && tasks as u64 <= Claim::MASK {
            // A second caller at the same time, or a region within a region, works alone.
            match self.region.try_lock() {
                Ok(mut regions) => return self.region(&mut regions, tasks, f),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return self.region(&mut poisoned.into_inner(), tasks, f);
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        (0..tasks).for_each(f);
    }
}

impl Drop for ClaimTeam {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.handles.iter().for_each(Thread::unpark);
        for worker in self.workers.drain(..) {
            // A worker catches the panics of tasks, so it ends normally.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for ClaimTeam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClaimTeam({} threads)", self.threads())
    }
}
