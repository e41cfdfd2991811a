//! How a region's tasks pass from the caller to the workers and back: the whole protocol, without threads.
//!
//! The tests drive this file under loom too, with loom's atomics and cell for those of the parent module.
#![allow(unsafe_code)]

use super::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, UnsafeCell};

/// Where tasks are claimed: bits 40.. epoch, bits 20..40 the region's task count, bits 0..20 the next task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim(u64);

impl Claim {
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// The most tasks of a region.
    pub(crate) const MOST: u64 = Self::MASK;

    fn new(epoch: u64, tasks: u64) -> Claim {
        Claim((epoch & (u64::MAX >> (2 * Self::BITS))) << (2 * Self::BITS) | tasks << Self::BITS)
    }

    fn next(self) -> Option<usize> {
        let next = self.0 & Self::MASK;
        (next < self.0 >> Self::BITS & Self::MASK).then_some(next as usize)
    }

    fn epoch(self) -> u64 {
        self.0 >> (2 * Self::BITS)
    }
}

/// One region at a time: `J` is what its tasks do.
pub(crate) struct Handoff<J> {
    claim: AtomicU64,
    job: UnsafeCell<Option<J>>,
    done: AtomicUsize,
    parked: AtomicU32,
    stop: AtomicBool,
}

// SAFETY: `job` is written by the one caller that may open regions, while no task is unclaimed or running, and read only
// by holders of a claimed task of that region (see `claim`).
unsafe impl<J: Send> Sync for Handoff<J> {}
// SAFETY: a job that may go to another thread may go there within the cell.
unsafe impl<J: Send> Send for Handoff<J> {}

impl<J: Copy> Handoff<J> {
    pub(crate) fn new() -> Handoff<J> {
        Handoff {
            claim: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            done: AtomicUsize::new(0),
            parked: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Opens region `epoch`; whether workers are parked, who must be woken.
    ///
    /// # Safety
    /// One thread at a time opens regions; the last one is over ([`is_over`](Handoff::is_over) said so), and its epoch was
    /// another one.
    pub(crate) unsafe fn open(&self, epoch: u64, tasks: usize, job: J) -> bool {
        self.done.store(0, Ordering::Relaxed);
        self.job.with_mut(|slot| {
            // SAFETY: the last region is over, so that no task is left to claim and nobody reads `job` now.
            unsafe { *slot = Some(job) };
        });
        self.claim.store(Claim::new(epoch, tasks as u64).0, Ordering::SeqCst);
        self.parked.load(Ordering::SeqCst) > 0
    }

    /// Claims a task, if one is left. It must be reported with [`finish`](Handoff::finish).
    pub(crate) fn claim(&self) -> Option<(usize, J)> {
        loop {
            let word = self.claim.load(Ordering::Acquire);
            let task = Claim(word).next()?;
            if self.claim.compare_exchange_weak(word, word + 1, Ordering::AcqRel, Ordering::Relaxed).is_err()
            {
                continue;
            }
            // SAFETY: the exchange succeeded, so `task` is a task of the region that is now open, and that region's caller
            // cannot see it over (nor write `job`) before this task has been counted as done.
            let job = self.job.with(|slot| unsafe { *slot });
            return Some((task, job.expect("an open region has a job")));
        }
    }

    /// A claimed task is done.
    pub(crate) fn finish(&self) {
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Whether all `tasks` of the open region are done.
    pub(crate) fn is_over(&self, tasks: usize) -> bool {
        self.done.load(Ordering::Acquire) >= tasks
    }

    /// The epoch of the last region opened.
    pub(crate) fn epoch(&self) -> u64 {
        Claim(self.claim.load(Ordering::Acquire)).epoch()
    }

    /// Waits with `park` until a region after `seen` opens or the team stops. Counting itself in before looking again,
    /// while the caller opens the region before it looks at the count, makes sure that one of the two sees the other.
    pub(crate) fn sleep(&self, seen: u64, park: impl Fn()) {
        self.parked.fetch_add(1, Ordering::SeqCst);
        while Claim(self.claim.load(Ordering::SeqCst)).epoch() == seen && !self.stop.load(Ordering::SeqCst) {
            park();
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Asks the workers to end; all must be woken afterwards.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
