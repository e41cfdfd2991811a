//! Rows shared among the threads of a team: each reads its own contiguous share from the front, so that reading ahead
//! stays with the reader; who has finished takes the back half of what another has left.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most threads that rows are shared among.
const MOST: usize = 64;

/// How many rows a thread takes at a time.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// Of its own share.
    pub(super) step: usize,
    /// The least of another's share.
    pub(super) least: usize,
}

/// `0..n` in shares.
pub(super) struct Shares {
    /// For each worker what is left of its share: the first row, and above it the row behind the last.
    left: [AtomicU64; MOST],
    workers: usize,
    pieces: Pieces,
}

impl Shares {
    /// Shares of `n` rows for at most `threads` threads; there are fewer where rows are few.
    ///
    /// # Panics
    /// When `n` does not fit 32 bits.
    pub(super) fn new(n: usize, pieces: Pieces, threads: usize) -> Shares {
        let share = Shares::share(n, pieces, threads);
        let workers = Shares::count(n, pieces, threads);
        let least = pieces.least.max(1);
        let n = u32::try_from(n).expect("rows of a matrix");
        let bound = |worker: usize| (worker * share).min(n as usize) as u32;
        let left = std::array::from_fn(|worker| {
            let range = if worker < workers { (bound(worker), bound(worker + 1)) } else { (0, 0) };
            AtomicU64::new(packed(range))
        });
        Shares { left, workers, pieces: Pieces { step: pieces.step.max(1), least } }
    }

    fn count(n: usize, pieces: Pieces, threads: usize) -> usize {
        threads.min(n.div_ceil(pieces.least.max(1))).clamp(1, MOST)
    }

    /// Rows of a share: a multiple of the least, so that steps stay where registers want them.
    pub(super) fn share(n: usize, pieces: Pieces, threads: usize) -> usize {
        n.div_ceil(Shares::count(n, pieces, threads)).next_multiple_of(pieces.least.max(1))
    }

    /// How many shares there are.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// The next rows for worker `worker`; none when all are taken.
    pub(super) fn next(&self, worker: usize) -> Option<Range<usize>> {
        loop {
            let front = self.left[worker].fetch_update(Relaxed, Relaxed, |left| {
                let (from, to) = unpacked(left);
                (from < to).then(|| packed((to.min(from.saturating_add(self.pieces.step as u32)), to)))
            });
            if let Ok(left) = front {
                let (from, to) = unpacked(left);
                return Some(from as usize..(from as usize + self.pieces.step).min(to as usize));
            }
            let stolen = (1..self.workers).find_map(|other| self.back((worker + other) % self.workers))?;
            // Nobody else gives this share rows, and an empty one is not taken from.
            self.left[worker].store(packed(stolen), Relaxed);
        }
    }

    /// Takes the back half of what is left of a share, or all if it is little.
    fn back(&self, of: usize) -> Option<(u32, u32)> {
        let keep = |left: u64| {
            let (from, to) = unpacked(left);
            let half = ((to - from) / 2).next_multiple_of(self.pieces.least as u32);
            to.saturating_sub(half.max(self.pieces.least as u32)).max(from)
        };
        let taken = self.left[of].fetch_update(Relaxed, Relaxed, |left| {
            let (from, to) = unpacked(left);
            (from < to).then(|| packed((from, keep(left))))
        });
        taken.ok().map(|left| (keep(left), unpacked(left).1))
    }
}

fn packed((from, to): (u32, u32)) -> u64 {
    u64::from(to) << 32 | u64::from(from)
}

fn unpacked(left: u64) -> (u32, u32) {
    (left as u32, (left >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{Pieces, Shares};

    #[test]
    fn a_thread_reads_its_own_share_in_order_and_then_the_end_of_anothers() {
        let shares = Shares::new(40, Pieces { step: 8, least: 4 }, 2);
        assert_eq!(shares.workers(), 2);
        let taken: Vec<_> = std::iter::from_fn(|| shares.next(0)).collect();
        assert_eq!(taken, [0..8, 8..16, 16..20, 28..36, 36..40, 24..28, 20..24]);
        assert_eq!(shares.next(1), None);
    }

    #[test]
    fn every_row_is_taken_once_by_however_many_threads() {
        for (n, step, least, threads) in
            [(1, 4, 4, 8), (4096, 64, 4, 3), (151_936, 256, 16, 7), (10, 1, 1, 2)]
        {
            let shares = Shares::new(n, Pieces { step, least }, threads);
            let seen = Mutex::new(vec![0u8; n]);
            std::thread::scope(|scope| {
                for worker in 0..shares.workers() {
                    let (shares, seen) = (&shares, &seen);
                    scope.spawn(move || {
                        while let Some(rows) = shares.next(worker) {
                            seen.lock().unwrap()[rows].iter_mut().for_each(|count| *count += 1);
                        }
                    });
                }
            });
            assert!(
                seen.into_inner().unwrap().iter().all(|&count| count == 1),
                "{n} {step} {least} {threads}"
            );
        }
    }
}
