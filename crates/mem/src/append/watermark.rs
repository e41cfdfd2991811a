//! Who sees which rows of a buffer, and who may write: the whole protocol, without the memory that it guards.
//!
//! The tests drive this file under loom too, with loom's mutex for the standard library's.

use super::sync::{Mutex, MutexGuard};

/// Rows in sequence, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Why a claim was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A live view ends at this row.
    Taken(usize),
    /// Rows that live views see lie where the new ones would go.
    Full,
}

/// The live views and claims of one buffer.
#[derive(Debug)]
pub(crate) struct Watermark(Mutex<Vec<Live>>);

/// How many live views see exactly these rows. Views of no rows are not listed.
#[derive(Debug)]
struct Live {
    rows: Rows,
    count: usize,
}

impl Watermark {
    pub(crate) fn new() -> Watermark {
        Watermark(Mutex::new(Vec::with_capacity(8)))
    }

    fn live(&self) -> MutexGuard<'_, Vec<Live>> {
        // The list is valid between any two statements that change it, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn add(live: &mut Vec<Live>, rows: Rows) {
        if rows.start == rows.end {
            return;
        }
        match live.iter_mut().find(|l| l.rows == rows) {
            Some(l) => l.count += 1,
            None => live.push(Live { rows, count: 1 }),
        }
    }

    /// A view of `rows` begins. Another view or claim that covers them must be alive, or nobody may ever have written
    /// them.
    pub(crate) fn enter(&self, rows: Rows) {
        Watermark::add(&mut self.live(), rows);
    }

    /// A view of `rows`, or a claim up to their end, ends.
    pub(crate) fn leave(&self, rows: Rows) {
        let mut live = self.live();
        if let Some(at) = live.iter().position(|l| l.rows == rows) {
            live[at].count -= 1;
            if live[at].count == 0 {
                live.swap_remove(at);
            }
        }
    }

    /// Grants the holder of a view of `rows` the `more` rows behind it; the claim is listed as a view of all of them.
    pub(crate) fn claim(&self, rows: Rows, more: usize, capacity: usize) -> Result<Rows, Refusal> {
        let mut live = self.live();
        let longest = live.iter().map(|l| l.rows.end).max().unwrap_or(0);
        if longest > rows.end {
            return Err(Refusal::Taken(longest));
        }
        let end = rows.end.checked_add(more).ok_or(Refusal::Full)?;
        let first = live.iter().map(|l| l.rows.start).min().unwrap_or(rows.end).min(rows.end);
        if end - first > capacity {
            return Err(Refusal::Full);
        }
        let granted = Rows { start: rows.start, end };
        Watermark::add(&mut live, granted);
        Ok(granted)
    }
}
