//! Claimed rows that are being written.

use std::sync::Arc;

use super::buffer::Claim;
use super::view::{AppendView, Behind, Prefix};
use crate::{Ledger, copy};

/// Claimed rows: nobody sees them, and only the holder writes them. Dropping the slot gives them back.
pub struct AppendSlot {
    prefix: Option<Arc<Prefix>>,
    claim: Claim,
    behind: Option<Behind>,
}

impl AppendSlot {
    pub(super) fn new(prefix: Option<Arc<Prefix>>, claim: Claim) -> AppendSlot {
        AppendSlot { prefix, claim, behind: None }
    }

    pub(super) fn with_behind(self, behind: Option<Behind>) -> AppendSlot {
        AppendSlot { behind, ..self }
    }

    /// Rows claimed.
    pub fn rows(&self) -> usize {
        self.claim.rows()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.claim.buffer().row_bytes()
    }

    /// The claimed rows of run `run`, to write: two stretches where they go round the end of a ring, else the second is
    /// empty. They hold anything: write every byte.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn run_mut(&mut self, run: usize) -> [&mut [u8]; 2] {
        self.claim.stretches_mut(run)
    }

    /// Claimed row `row` of run `run`, to write.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, run: usize, row: usize) -> &mut [u8] {
        let len = self.row_bytes();
        let [first, second] = self.run_mut(run);
        let at = row * len;
        match at.checked_sub(first.len()).filter(|_| len > 0) {
            Some(at) => &mut second[at..at + len],
            None => &mut first[at..at + len],
        }
    }

    /// Writes claimed row `row` of run `run`. [`AppendSlot::commit`] counts the bytes.
    ///
    /// # Panics
    /// When there is no such row or `bytes` is not as long as one.
    #[allow(clippy::disallowed_methods)]
    pub fn write_row(&mut self, run: usize, row: usize, bytes: &[u8]) {
        self.row_mut(run, row).copy_from_slice(bytes);
    }

    /// Writes all claimed rows of run `run`: the pieces one behind the other. [`AppendSlot::commit`] counts the bytes.
    ///
    /// # Panics
    /// When there is no such run, or the pieces are together shorter or longer.
    pub fn fill<'a>(&mut self, run: usize, pieces: impl IntoIterator<Item = &'a [u8]>) {
        self.fill_counted(run, pieces, copy::Purpose::Kernel, &Ledger::default());
    }

    pub(super) fn fill_counted<'a>(
        &mut self,
        run: usize,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        purpose: copy::Purpose,
        ledger: &Ledger,
    ) {
        let [mut to, mut later] = self.run_mut(run);
        for mut piece in pieces {
            while !piece.is_empty() {
                if to.is_empty() {
                    std::mem::swap(&mut to, &mut later);
                }
                let (now, rest) = piece.split_at(piece.len().min(to.len()));
                assert!(!now.is_empty(), "the pieces fill the claimed rows");
                let (target, left) = std::mem::take(&mut to).split_at_mut(now.len());
                copy::into(target, now, purpose, ledger);
                (to, piece) = (left, rest);
            }
        }
        assert!(to.is_empty() && later.is_empty(), "the pieces fill the claimed rows");
    }

    pub(super) fn into_view(self) -> AppendView {
        AppendView::new(self.prefix, self.claim.into_live()).with_behind(self.behind)
    }

    /// The view that sees the claimed rows too. All of them must have been written.
    pub fn commit(self, ledger: &Ledger) -> AppendView {
        ledger.appended_bytes(self.rows() * self.row_bytes() * self.claim.buffer().outer());
        self.into_view()
    }
}
