//! A resident team of threads that claims tasks from one atomic word.
//!
//! Between regions the workers spin for a while, so that a region costs well under a microsecond to start; then
//! they park, so that an idle session burns no processor time. Tasks are claimed, never assigned: when a worker
//! loses its core, the others and the caller do what it has not claimed. What it has claimed must be waited for, so a
//! caller that had to wait much longer than it worked goes on alone for a while: on a machine that another program
//! keeps busy, that is faster than to share.
#![allow(unsafe_code)]

mod handoff;

/// What [`handoff`] is made of; its tests under loom have other ones.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

    pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub(super) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use heirloom_runtime::{Soon, Team};
use heirloom_simd::prefetch_address;

use handoff::{Claim, Handoff};

/// How long a worker looks for work before it parks.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(500);

/// A wait of less is no sign of a lost core.
const STALL: Duration = Duration::from_micros(300);
/// How long the caller works alone after a first stall, and at most after one that follows another.
const ALONE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(128)];

/// The most bytes that a worker brings near while it waits.
const AHEAD: usize = 256 * 1024;

/// What was announced last.
#[derive(Default)]
struct Announced {
    address: AtomicUsize,
    bytes: AtomicUsize,
    share: AtomicUsize,
    count: AtomicUsize,
}

impl Announced {
    fn set(&self, soon: Soon) {
        self.address.store(soon.address, Ordering::Relaxed);
        self.bytes.store(soon.bytes, Ordering::Relaxed);
        self.share.store(soon.share, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The addresses that worker `worker` begins with. Halves of two announcements may be mixed: then it is a bad hint.
    fn of(&self, worker: usize) -> std::ops::Range<usize> {
        let (bytes, share) = (self.bytes.load(Ordering::Relaxed), self.share.load(Ordering::Relaxed));
        let from = worker.saturating_mul(share).min(bytes);
        let to = bytes.min(from.saturating_add(share.min(AHEAD)));
        let address = self.address.load(Ordering::Relaxed);
        address.wrapping_add(from)..address.wrapping_add(to)
    }
}

/// A closure without its lifetime.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

// SAFETY: the closure is `Sync`, and used only between the start and the end of the region that borrowed it.
unsafe impl Send for Job {}

struct Shared {
    handoff: Handoff<Job>,
    panicked: AtomicBool,
    spin: Duration,
    announced: Announced,
}

impl Shared {
    /// Claims and runs tasks until none is left to claim.
    fn work(&self) {
        while let Some((task, job)) = self.handoff.claim() {
            // SAFETY: the caller keeps the closure alive until all tasks are done.
            let f = unsafe { &*job.0 };
            if catch_unwind(AssertUnwindSafe(|| f(task))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.handoff.finish();
        }
    }

    fn worker(&self, index: usize) {
        let mut seen = 0;
        let (mut announced, mut ahead) = (0, 0..0);
        loop {
            let started = Instant::now();
            let mut turns = 0u32;
            loop {
                if self.handoff.is_stopped() {
                    return;
                }
                let epoch = self.handoff.epoch();
                if epoch != seen {
                    seen = epoch;
                    self.work();
                    break;
                }
                turns = turns.wrapping_add(1);
                let count = self.announced.count.load(Ordering::Relaxed);
                if count != announced {
                    (announced, ahead) = (count, self.announced.of(index));
                }
                if ahead.start < ahead.end {
                    // Two at a time: work that comes meanwhile does not wait.
                    prefetch_address(ahead.start);
                    prefetch_address(ahead.start + 64);
                    ahead.start += 128;
                } else {
                    std::hint::spin_loop();
                }
                if turns & 0xff == 0 && started.elapsed() > self.spin {
                    self.handoff.sleep(seen, thread::park);
                    break;
                }
            }
        }
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
            handoff: Handoff::new(),
            panicked: AtomicBool::new(false),
            spin,
            announced: Announced::default(),
        });
        let workers: Vec<_> = (1..threads.max(1))
            .filter_map(|i| {
                let shared = shared.clone();
                // A system that gives no more threads leaves a smaller team, not an error.
                thread::Builder::new().name(format!("heirloom-{i}")).spawn(move || shared.worker(i)).ok()
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
        regions.epoch = regions.epoch.wrapping_add(1);
        // SAFETY: only the lifetime is erased; the region ends before this function returns.
        let job = Job(unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync)>(f)
        });
        let started = Instant::now();
        // SAFETY: the region lock is held, and the last region was waited for.
        if unsafe { shared.handoff.open(regions.epoch, tasks, job) } {
            self.handles.iter().for_each(Thread::unpark);
        }
        shared.work();
        if !shared.handoff.is_over(tasks) {
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
        while !self.shared.handoff.is_over(tasks) {
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

    fn announce(&self, soon: Soon) {
        self.shared.announced.set(soon);
    }

    fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if tasks > 1 && !self.workers.is_empty() && tasks as u64 <= Claim::MOST {
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
        self.shared.handoff.stop();
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
