//! The watermark of append buffers under every interleaving of a few threads. The file is the crate's own, with loom's
//! mutex for the standard library's.
#![allow(dead_code)]

mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

#[path = "../src/append/watermark.rs"]
mod watermark;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use watermark::{Refusal, Rows, Watermark};

/// A buffer whose rows loom watches: a read beside a write fails the test.
struct Buffer {
    watermark: Watermark,
    rows: Vec<UnsafeCell<()>>,
}

impl Buffer {
    fn new(capacity: usize) -> Arc<Buffer> {
        let rows = (0..capacity).map(|_| UnsafeCell::new(())).collect();
        Arc::new(Buffer { watermark: Watermark::new(), rows })
    }

    fn read(&self, rows: Rows) {
        (rows.start..rows.end).for_each(|row| self.rows[row % self.rows.len()].with(|_| ()));
    }

    /// Claims and writes `more` rows behind `rows`.
    fn append(&self, rows: Rows, more: usize) -> Result<Rows, Refusal> {
        let granted = self.watermark.claim(rows, more, self.rows.len())?;
        (rows.end..granted.end).for_each(|row| self.rows[row % self.rows.len()].with_mut(|_| ()));
        Ok(granted)
    }
}

const fn rows(start: usize, end: usize) -> Rows {
    Rows { start, end }
}

// proves: Z4, K3
#[test]
fn of_two_forks_one_at_a_time_writes_behind_the_prefix_that_both_read() {
    loom::model(|| {
        let buffer = Buffer::new(3);
        let root = buffer.append(rows(0, 0), 1).unwrap();
        buffer.watermark.enter(root);
        let granted = Arc::new(AtomicUsize::new(0));
        let forks: Vec<_> = (0..2)
            .map(|_| {
                let (buffer, granted) = (buffer.clone(), granted.clone());
                thread::spawn(move || {
                    if let Ok(longer) = buffer.append(root, 1) {
                        granted.fetch_add(1, Relaxed);
                        buffer.read(longer);
                        // Dropped, as a failed call drops it: the other may have the row then.
                        buffer.watermark.leave(longer);
                    }
                    buffer.read(root);
                    buffer.watermark.leave(root);
                })
            })
            .collect();
        for fork in forks {
            fork.join().unwrap();
        }
        assert!((1..=2).contains(&granted.load(Relaxed)), "at least one fork appends");
        assert_eq!(buffer.watermark.claim(rows(1, 1), 3, 3), Ok(rows(1, 4)), "nothing is left listed");
    });
}

// proves: Z4
#[test]
fn a_ring_waits_for_the_windows_that_are_read() {
    loom::model(|| {
        let buffer = Buffer::new(2);
        let all = buffer.append(rows(0, 0), 2).unwrap();
        // The writer keeps the last row, a reader both.
        let window = rows(1, 2);
        buffer.watermark.enter(window);
        let reader = {
            let buffer = buffer.clone();
            thread::spawn(move || {
                buffer.read(all);
                buffer.watermark.leave(all);
            })
        };
        match buffer.append(window, 1) {
            Ok(next) => {
                buffer.read(next);
                assert_eq!(next, rows(1, 3));
            }
            Err(refusal) => assert_eq!(refusal, Refusal::Full),
        }
        reader.join().unwrap();
    });
}

// proves: Z4, K2
#[test]
fn a_view_that_is_cloned_while_another_ends_stays_protected() {
    loom::model(|| {
        let buffer = Buffer::new(2);
        let root = buffer.append(rows(0, 0), 1).unwrap();
        let other = {
            let buffer = buffer.clone();
            buffer.watermark.enter(root);
            thread::spawn(move || {
                buffer.watermark.enter(root);
                buffer.watermark.leave(root);
                buffer.read(root);
                buffer.watermark.leave(root);
            })
        };
        buffer.watermark.leave(root);
        // Whoever sees nothing may claim everything that nobody sees.
        if let Ok(granted) = buffer.append(rows(0, 0), 1) {
            buffer.watermark.leave(granted);
        }
        other.join().unwrap();
    });
}
