//! The innermost loops: a few rows of a times one or more panels of b, the sums in registers.
#![allow(unsafe_code)]

use super::{Block, Even, PANEL, Places, Product, ROWS, Start};
use crate::disjoint::DisjointMut;
use crate::lanes::Lanes;

/// Where a tile is computed.
#[derive(Clone, Copy)]
pub(super) struct At {
    row: usize,
    column: usize,
    /// The last column of the part, exclusive.
    end: usize,
    depth: (usize, usize),
}

/// Calls `tile` with the constants for `$rows` rows and `$P` panels.
macro_rules! by_rows {
    ($rows:expr, $P:literal, [$($M:literal),*], $most:literal, $args:tt) => {
        match $rows {
            $($M => { S::tile::<L, $M, $P> $args; $M })*
            _ => { S::tile::<L, $most, $P> $args; $most }
        }
    };
}

/// Levels whose tiles are functions of their own: within one large function registers would be spilled.
pub(super) trait Tiles: Lanes {
    fn tile<L: Places, const M: usize, const P: usize>(
        self,
        product: &Product<'_>,
        at: At,
        block: Block<'_, L>,
        out: &DisjointMut<'_, f32>,
    );
}

impl Tiles for heirloom_simd::Portable {
    fn tile<L: Places, const M: usize, const P: usize>(
        self,
        product: &Product<'_>,
        at: At,
        block: Block<'_, L>,
        out: &DisjointMut<'_, f32>,
    ) {
        tile::<Self, L, M, P>(self, product, at, block, out);
    }
}

/// The tiles of a level with the instructions `$features`, which its token proves.
#[cfg(target_arch = "x86_64")]
macro_rules! tiles {
    ($level:ty, $features:literal) => {
        impl Tiles for $level {
            #[inline(always)]
            fn tile<L: Places, const M: usize, const P: usize>(
                self,
                product: &Product<'_>,
                at: At,
                block: Block<'_, L>,
                out: &DisjointMut<'_, f32>,
            ) {
                #[target_feature(enable = $features)]
                #[inline(never)]
                fn own<L: Places, const M: usize, const P: usize>(
                    s: $level,
                    product: &Product<'_>,
                    at: At,
                    block: Block<'_, L>,
                    out: &DisjointMut<'_, f32>,
                ) {
                    tile::<$level, L, M, P>(s, product, at, block, out);
                }
                // SAFETY: the token proves the features.
                unsafe { own::<L, M, P>(self, product, at, block, out) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
tiles!(heirloom_simd::Avx2, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
tiles!(heirloom_simd::Avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c");

pub(super) fn block<S: Tiles, L: Places>(
    s: S,
    product: &Product<'_>,
    rows: (usize, usize),
    columns: (usize, usize),
    depth: (usize, usize),
    block: Block<'_, L>,
    out: &DisjointMut<'_, f32>,
) {
    let mut at = At { row: rows.0, column: columns.0, end: columns.1, depth };
    let few = rows.1 - rows.0 <= 3;
    let mut first = rows.0;
    while first < rows.1 {
        let last = (first + ROWS).min(rows.1);
        at.column = columns.0;
        while at.column < columns.1 {
            let b = Block { b: &block.b[(at.column - columns.0) / PANEL * block.panel..], ..block };
            let panels = (columns.1 - at.column).div_ceil(PANEL);
            at.row = first;
            let width = match panels {
                // 32 registers hold four panels for each of six rows; 16 hold one, or several for few rows, so that
                // enough sums are under way.
                4.. if S::N == 16 || few => 4,
                2..4 if S::N == 16 || few => 2,
                _ => 1,
            };
            while at.row < last {
                let left = last - at.row;
                at.row += match width {
                    4 if S::N == 16 => by_rows!(left, 4, [1, 2, 3, 4, 5], 6, (s, product, at, b, out)),
                    2 if S::N == 16 => by_rows!(left, 2, [1, 2, 3, 4, 5], 6, (s, product, at, b, out)),
                    4 => by_rows!(left, 4, [], 1, (s, product, at, b, out)),
                    2 => by_rows!(left, 2, [1, 2], 3, (s, product, at, b, out)),
                    _ => by_rows!(left, 1, [1, 2, 3, 4, 5], 6, (s, product, at, b, out)),
                };
            }
            at.column += width * PANEL;
        }
        first = last;
    }
}

/// `M` rows times `P` panels; the last panel may be cut off.
// Registers are indexed by constants, and the loops unrolled.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn tile<S: Tiles, L: Places, const M: usize, const P: usize>(
    s: S,
    product: &Product<'_>,
    at: At,
    block: Block<'_, L>,
    out: &DisjointMut<'_, f32>,
) {
    let registers = PANEL / S::N;
    let k = at.depth.1 - at.depth.0;
    let needed = block.places.furthest(k) + (P - 1) * block.panel + PANEL;
    if block.b.len() < needed {
        return cut_off::<S, L, M, P>(s, product, at, block, out);
    }
    let mut rows: [&[f32]; M] = [&[]; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &product.a[(at.row + m) * product.lda + at.depth.0..][..k];
    }
    // What the sums begin with is added at the end: until then nothing but the sums is in registers.
    let mut sums = [[[s.splat(0.0); 2]; P]; M];
    for j in 0..k {
        let row = block.places.of(j);
        let mut b = [[s.splat(0.0); 2]; P];
        for p in 0..P {
            // SAFETY: `furthest` is at least the place of each of the k rows, so that the panel ends within `needed`.
            let panel = unsafe { block.b.get_unchecked(row + p * block.panel..) };
            for v in 0..registers {
                // SAFETY: as above; a panel has `PANEL` elements.
                b[p][v] = s.load(unsafe { panel.get_unchecked(v * S::N..(v + 1) * S::N) });
            }
        }
        for m in 0..M {
            // SAFETY: each row was cut to k elements.
            let x = s.splat(unsafe { *rows[m].get_unchecked(j) });
            for p in 0..P {
                for v in 0..registers {
                    sums[m][p][v] = s.fma(x, b[p][v], sums[m][p][v]);
                }
            }
        }
    }
    let width = (at.end - at.column).min(P * PANEL);
    let first_block = at.depth.0 == 0;
    for m in 0..M {
        let from = (at.row + m) * product.ldo + at.column;
        // SAFETY: parts of different tasks have no row and column in common, and this borrow ends with the row.
        let to = unsafe { out.part(from..from + width) };
        // The row's last elements, where they do not fill the registers.
        let mut last = [[0.0f32; PANEL]; P];
        let last = last.as_flattened_mut();
        let start = match product.start {
            _ if !first_block => &*to,
            Start::Zero => &[],
            Start::Out => &*to,
            Start::Row(values) => {
                for p in 0..P {
                    for v in 0..registers {
                        sums[m][p][v] = s.add(sums[m][p][v], s.splat(values[at.row + m]));
                    }
                }
                &[]
            }
            Start::Column(values) => &values[at.column..][..width],
        };
        if !start.is_empty() {
            let start = if width == P * PANEL {
                start
            } else {
                last.iter_mut().zip(start).for_each(|(l, &v)| *l = v);
                &*last
            };
            for p in 0..P {
                for v in 0..registers {
                    sums[m][p][v] = s.add(sums[m][p][v], s.load(&start[p * PANEL + v * S::N..]));
                }
            }
        }
        let whole = width == P * PANEL;
        let into = if whole { &mut *to } else { &mut *last };
        for p in 0..P {
            for v in 0..registers {
                s.store(&mut into[p * PANEL + v * S::N..], sums[m][p][v]);
            }
        }
        if !whole {
            to.iter_mut().zip(last).for_each(|(t, v)| *t = *v);
        }
    }
}

/// A tile at the end of a matrix that is read as it lies, where no whole panel is left: on a copy of its panels.
#[cold]
#[inline(never)]
fn cut_off<S: Tiles, L: Places, const M: usize, const P: usize>(
    s: S,
    product: &Product<'_>,
    at: At,
    block: Block<'_, L>,
    out: &DisjointMut<'_, f32>,
) {
    let k = at.depth.1 - at.depth.0;
    let mut copy = vec![0.0; P * PANEL * k.max(1)];
    for (j, row) in copy.chunks_exact_mut(P * PANEL).enumerate().take(k) {
        for (p, to) in row.chunks_exact_mut(PANEL).enumerate() {
            let from = (block.places.of(j) + p * block.panel).min(block.b.len());
            to.iter_mut().zip(&block.b[from..]).for_each(|(t, &v)| *t = v);
        }
    }
    s.tile::<Even, M, P>(product, at, Block { b: &copy, places: Even(P * PANEL), panel: PANEL }, out);
}
