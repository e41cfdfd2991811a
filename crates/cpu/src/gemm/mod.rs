//! Products of FLOAT matrices: `out = a b`, blocked for the caches, with the columns of b in panels of 16.
#![allow(unsafe_code)]

mod lines;
mod pack;
mod tile;

use heirloom_runtime::{CancelToken, Cancelled, Team};
use heirloom_simd::{Isa, Portable};

pub(crate) use pack::{Columns, Matrix, Transposed, pack_all, panel_floats};

use crate::disjoint::DisjointMut;

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
    /// Read as they lie transposed, [n, k], the lines so far apart: for few rows or columns.
    Lines(&'a [f32], usize),
    /// Read as they lie, each row from a place of its own.
    Scattered(&'a [f32], &'a Scattered, Gaps),
}

/// Where rows of b that are not equally far apart begin.
pub(crate) struct Scattered {
    places: Vec<u32>,
    furthest: usize,
}

impl Scattered {
    pub(crate) fn new(places: Vec<u32>) -> Scattered {
        let furthest = places.iter().copied().max().unwrap_or(0) as usize;
        Scattered { places, furthest }
    }
}

/// Of `pitch` columns of the product the first `width` are columns of the result, again and again.
#[derive(Clone, Copy)]
pub(crate) struct Gaps {
    pub(crate) pitch: usize,
    pub(crate) width: usize,
}

/// One product: a is [m, k], its rows `lda` apart; out is [m, n], its rows `ldo` apart. Where b has [`Gaps`], they are
/// among the n columns, and out is without them.
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
    // A region costs about a microsecond, in which one thread does some ten thousand products; less work than a few of
    // them is done alone.
    let most = if work < 1 << 17 { 1 } else { threads * if threads > 1 { 4 } else { 1 } };
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
        if let Right::Lines(lines, stride) = self.b {
            return lines::run(self, (lines, stride), out, team, cancel);
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
                            places: Even(PANEL),
                            panel: PANEL * k,
                        };
                        self.block(part.rows, columns, depth, block, out);
                    }
                }
            }
            Right::Rows(b, ldb) => {
                for depth in (0..k.max(1)).step_by(DEPTH) {
                    if cancel.is_cancelled() {
                        return;
                    }
                    let depth = (depth, (depth + DEPTH).min(k));
                    let b = &b[(depth.0 * ldb + first).min(b.len())..];
                    let block = Block { b, places: Even(ldb), panel: PANEL };
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
                        let places = Even(PANEL);
                        let block = Block { b: &packed, places, panel: PANEL * (depth.1 - depth.0) };
                        self.block(part.rows, columns, depth, block, out);
                    }
                }
            }
            Right::Lines(b, stride) => {
                lines::strip(self.isa, self, (b, stride), (part.rows, part.columns), out);
            }
            Right::Scattered(b, rows, gaps) => self.scattered(part, (b, rows, gaps), out, cancel),
        }
    }

    /// Blocks of columns with gaps: the sums of one in memory of their own, then their columns without the gaps.
    fn scattered(
        &self,
        part: Part,
        (b, rows, gaps): (&[f32], &Scattered, Gaps),
        out: &DisjointMut<'_, f32>,
        cancel: &CancelToken,
    ) {
        let count = part.rows.1 - part.rows.0;
        let block_rows = count.min(ROWS);
        let mut sums = vec![0.0f32; block_rows * COLUMNS];
        for at in (part.columns.0..part.columns.1).step_by(COLUMNS) {
            let columns = (at, (at + COLUMNS).min(part.columns.1));
            let width = columns.1 - at;
            for first in (part.rows.0..part.rows.1).step_by(block_rows.max(1)) {
                if cancel.is_cancelled() {
                    return;
                }
                let last = (first + block_rows).min(part.rows.1);
                let own = Product {
                    a: &self.a[first * self.lda..],
                    start: match self.start {
                        Start::Row(values) => Start::Row(&values[first..]),
                        other => other,
                    },
                    ldo: COLUMNS,
                    ..*self
                };
                {
                    let sums = DisjointMut::new(&mut sums);
                    for depth in (0..self.k.max(1)).step_by(DEPTH) {
                        let depth = (depth, (depth + DEPTH).min(self.k));
                        let places =
                            Listed { places: &rows.places[depth.0..depth.1], furthest: rows.furthest };
                        let block = Block { b: &b[at.min(b.len())..], places, panel: PANEL };
                        own.block((0, last - first), (0, width), depth, block, &sums);
                    }
                }
                for (row, sums) in (first..last).zip(sums.chunks_exact(COLUMNS)) {
                    gaps.close(sums, columns, |to| {
                        // SAFETY: parts of different tasks have no row and column in common.
                        unsafe { out.part(row * self.ldo + to.start..row * self.ldo + to.end) }
                    });
                }
            }
        }
    }

    /// One block of the depth: `b` begins at its first row and column.
    fn block<L: Places>(
        &self,
        rows: (usize, usize),
        columns: (usize, usize),
        depth: (usize, usize),
        block: Block<'_, L>,
        out: &DisjointMut<'_, f32>,
    ) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(s) => tile::block(s, self, rows, columns, depth, block, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(s) => tile::block(s, self, rows, columns, depth, block, out),
            _ => tile::block(Portable, self, rows, columns, depth, block, out),
        }
    }
}

impl Gaps {
    /// Copies `sums`, columns `columns` of the product, to their places in a row of the result.
    #[inline]
    pub(crate) fn close_into(self, sums: &[f32], columns: (usize, usize), out: &mut [f32]) {
        let mut at = columns.0;
        while at < columns.1 {
            let (row, from) = (at / self.pitch, at % self.pitch);
            let end = (row * self.pitch + self.width).min(columns.1);
            if from < self.width {
                let to = &mut out[row * self.width + from..][..end - at];
                to.iter_mut().zip(&sums[at - columns.0..]).for_each(|(t, &s)| *t = s);
            }
            at = (row + 1) * self.pitch;
        }
    }

    /// The same, where `to` gives the range of columns of the result.
    fn close<'o>(
        self,
        sums: &[f32],
        columns: (usize, usize),
        to: impl Fn(std::ops::Range<usize>) -> &'o mut [f32],
    ) {
        let mut at = columns.0;
        while at < columns.1 {
            let (row, from) = (at / self.pitch, at % self.pitch);
            let end = (row * self.pitch + self.width).min(columns.1);
            if from < self.width {
                let place = row * self.width + from;
                let to = to(place..place + end - at);
                to.iter_mut().zip(&sums[at - columns.0..]).for_each(|(t, &s)| *t = s);
            }
            at = (row + 1) * self.pitch;
        }
    }
}

/// Rows of b in panels, or as they lie.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a, L> {
    b: &'a [f32],
    /// Where its rows begin.
    places: L,
    /// From one panel to the next.
    panel: usize,
}

/// Where the rows of a block of b begin.
///
/// # Safety
/// `of` gives no more than `furthest` for each of the rows.
pub(crate) unsafe trait Places: Copy {
    /// Where row `j` begins.
    fn of(self, j: usize) -> usize;
    /// At least where each of the first `k` rows begins.
    fn furthest(self, k: usize) -> usize;
}

/// Rows equally far apart.
#[derive(Clone, Copy)]
pub(crate) struct Even(usize);

// SAFETY: the places rise with j.
unsafe impl Places for Even {
    #[inline(always)]
    fn of(self, j: usize) -> usize {
        j * self.0
    }
    #[inline(always)]
    fn furthest(self, k: usize) -> usize {
        k.saturating_sub(1) * self.0
    }
}

/// Rows of a [`Scattered`].
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a> {
    places: &'a [u32],
    furthest: usize,
}

// SAFETY: `furthest` is the greatest of all places of the list that these are a part of.
unsafe impl Places for Listed<'_> {
    #[inline(always)]
    fn of(self, j: usize) -> usize {
        self.places[j] as usize
    }
    #[inline(always)]
    fn furthest(self, k: usize) -> usize {
        assert!(k <= self.places.len(), "rows of the list");
        self.furthest
    }
}
