//! Products of FLOAT matrices: `out = a b`, blocked for the caches, with the columns of b in panels of 16.
#![allow(unsafe_code)]

mod pack;
mod tile;

use heirloom_runtime::{CancelToken, Cancelled, Team};
use heirloom_simd::Isa;

pub(crate) use pack::{Columns, Matrix, Transposed, pack_all, panel_floats};

use crate::disjoint::DisjointMut;
use crate::lanes::for_level;

/// Columns of a panel.
pub(crate) const PANEL: usize = 16;

/// Depth of a block: a panel's part of it stays in the first-level cache. Sums of as many products of 8-bit codes are
/// exact.
pub(crate) const DEPTH: usize = 256;

/// Columns of a block.
const COLUMNS: usize = 128;

/// Rows of a block: its part of a and the block of b stay in the second-level cache.
const ROWS: usize = 120;

/// What sums begin with.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    Zero,
    /// One number for each row.
    Row(&'a [f32]),
    /// One number for each column.
    Column(&'a [f32]),
    /// What the result holds already.
    Out,
}

/// Where the elements of b come from.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a> {
    /// All panels, made by [`pack_all`].
    Packed(&'a [f32]),
    /// Put into panels on the way.
    Columns(&'a dyn Columns),
    /// Read as they lie, [k, n], the rows so far apart: for few rows of a.
    Rows(&'a [f32], usize),
}

/// One product: a is [m, k], its rows `lda` apart; out is [m, n], its rows `ldo` apart.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub(crate) isa: Isa,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: &'a [f32],
    pub(crate) lda: usize,
    pub(crate) b: Right<'a>,
    pub(crate) start: Start<'a>,
    pub(crate) ldo: usize,
}

/// A part of a product that one task computes.
#[derive(Clone, Copy)]
struct Part {
    rows: (usize, usize),
    columns: (usize, usize),
}

/// Shares work of `units` pieces into tasks: how many, and pieces of each.
pub(crate) fn share(units: usize, work: usize, threads: usize) -> (usize, usize) {
    // A region costs about a microsecond; less work than some of them is done alone.
    let most = if work < 1 << 16 { 1 } else { threads * if threads > 1 { 4 } else { 1 } };
    let each = units.div_ceil(most.clamp(1, units.max(1)));
    (units.div_ceil(each.max(1)), each.max(1))
}

impl Product<'_> {
    /// Computes all of it; `out` begins where the result does.
    ///
    /// # Errors
    /// When the call is cancelled.
    pub(crate) fn run(
        &self,
        out: &mut [f32],
        team: &dyn Team,
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        self.run_shared(&DisjointMut::new(out), team, cancel)
    }

    fn run_shared(
        &self,
        out: &DisjointMut<'_, f32>,
        team: &dyn Team,
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        let Product { m, n, k, .. } = *self;
        if m == 0 || n == 0 {
            return Ok(());
        }
        let work = m.saturating_mul(n).saturating_mul(k);
        let panels = n.div_ceil(PANEL);
        // Few columns, many rows: rows are shared.
        let by_rows = panels < 2 * team.threads() && m >= 24;
        let units = if by_rows { m.div_ceil(12) } else { panels };
        let (tasks, each) = share(units, work, team.threads());
        team.run(tasks, &|task| {
            let (from, to) = (task * each, ((task + 1) * each).min(units));
            let part = match by_rows {
                true => Part { rows: (from * 12, (to * 12).min(m)), columns: (0, n) },
                false => Part { rows: (0, m), columns: (from * PANEL, (to * PANEL).min(n)) },
            };
            self.part(part, out, cancel);
        });
        cancel.check()
    }

    /// Computes all of it on this thread.
    pub(crate) fn run_alone(&self, out: &mut [f32], cancel: &CancelToken) {
        if self.m > 0 && self.n > 0 {
            let part = Part { rows: (0, self.m), columns: (0, self.n) };
            self.part(part, &DisjointMut::new(out), cancel);
        }
    }

    fn part(&self, part: Part, out: &DisjointMut<'_, f32>, cancel: &CancelToken) {
        let k = self.k;
        let (first, end) = part.columns;
        match self.b {
            Right::Packed(panels) => {
                for at in (first..end).step_by(COLUMNS) {
                    if cancel.is_cancelled() {
                        return;
                    }
                    let columns = (at, (at + COLUMNS).min(end));
                    for depth in (0..k.max(1)).step_by(DEPTH) {
                        let depth = (depth, (depth + DEPTH).min(k));
                        let block = Block {
                            b: &panels[at / PANEL * PANEL * k + depth.0 * PANEL..],
                            row: PANEL,
                            panel: PANEL * k,
                        };
                        self.block(part.rows, columns, depth, block, out);
                    }
                }
            }
            Right::Rows(b, ldb) => {
                for depth in (0..k.max(1)).step_by(DEPTH) {
                    let depth = (depth, (depth + DEPTH).min(k));
                    let block =
                        Block { b: &b[(depth.0 * ldb + first).min(b.len())..], row: ldb, panel: PANEL };
                    self.block(part.rows, (first, end), depth, block, out);
                }
            }
            Right::Columns(source) => {
                let widest = (end - first).min(COLUMNS).next_multiple_of(PANEL);
                let mut packed = vec![0.0; widest * k.min(DEPTH)];
                for at in (first..end).step_by(COLUMNS) {
                    let columns = (at, (at + COLUMNS).min(end));
                    for depth in (0..k.max(1)).step_by(DEPTH) {
                        if cancel.is_cancelled() {
                            return;
                        }
                        let depth = (depth, (depth + DEPTH).min(k));
                        source.pack(columns, depth, &mut packed);
                        let block = Block { b: &packed, row: PANEL, panel: PANEL * (depth.1 - depth.0) };
                        self.block(part.rows, columns, depth, block, out);
                    }
                }
            }
        }
    }

    /// One block of the depth: `b` begins at its first row and column.
    fn block(
        &self,
        rows: (usize, usize),
        columns: (usize, usize),
        depth: (usize, usize),
        block: Block<'_>,
        out: &DisjointMut<'_, f32>,
    ) {
        block_of(self.isa, self, rows, columns, depth, block, out);
    }
}

/// Rows of b in panels, or as they lie.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    b: &'a [f32],
    /// From one row to the next.
    row: usize,
    /// From one panel to the next.
    panel: usize,
}

for_level! {
    fn block_of(
        s,
        product: &Product<'_>,
        rows: (usize, usize),
        columns: (usize, usize),
        depth: (usize, usize),
        block: Block<'_>,
        out: &DisjointMut<'_, f32>,
    ) {
        tile::block(s, product, rows, columns, depth, block, out);
    }
}
