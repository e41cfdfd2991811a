//! The innermost loops: a few rows of a times one or more panels of b, the sums in registers.
#![allow(unsafe_code)]

use super::{Block, PANEL, Places, Product, ROWS, Start};
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
#[inline(always)]
fn tile<S: Lanes, L: Places, const M: usize, const P: usize>(
    s: S,
    product: &Product<'_>,
    at: At,
    block: Block<'_, L>,
    out: &DisjointMut<'_, f32>,
) {
    let registers = PANEL / S::N;
    let k = at.depth.1 - at.depth.0;
    let first_block = at.depth.0 == 0;
    let mut rows: [&[f32]; M] = [&[]; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &product.a[(at.row + m) * product.lda + at.depth.0..][..k];
    }
    let width = (at.end - at.column).min(P * PANEL);
    let mut sums = [[[s.splat(0.0); 2]; P]; M];
    // SAFETY: parts of different tasks have no row and column in common, and this borrow ends with the tile.
    let to: [&mut [f32]; M] = std::array::from_fn(|m| unsafe {
        let from = (at.row + m) * product.ldo + at.column;
        out.part(from..from + width)
    });
    for m in 0..M {
        let whole = width == P * PANEL;
        let mut start = [[0.0f32; PANEL]; P];
        let start = start.as_flattened_mut();
        let from: &[f32] = match product.start {
            _ if !first_block => &*to[m],
            Start::Zero => continue,
            Start::Out => &*to[m],
            Start::Row(values) => {
                sums[m] = [[s.splat(values[at.row + m]); 2]; P];
                continue;
            }
            Start::Column(values) => &values[at.column..],
        };
        let from = if whole {
            from
        } else {
            start.iter_mut().zip(from).for_each(|(s, &v)| *s = v);
            &*start
        };
        for p in 0..P {
            for v in 0..registers {
                sums[m][p][v] = s.load(&from[p * PANEL + v * S::N..]);
            }
        }
    }
    // The end of a matrix that is read as it lies may have no whole panel left.
    let needed = block.places.furthest(k) + (P - 1) * block.panel + PANEL;
    if block.b.len() >= needed {
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
            // One broadcast at a time: the sums and b fill the registers.
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
    } else {
        // Rows and sums are indexed side by side, and unrolled.
        #[allow(clippy::needless_range_loop)]
        for j in 0..k {
            for p in 0..P {
                let mut panel = [0.0; PANEL];
                let from = (block.places.of(j) + p * block.panel).min(block.b.len());
                let own = width.saturating_sub(p * PANEL).min(PANEL);
                panel.iter_mut().zip(block.b[from..].iter().take(own)).for_each(|(t, &v)| *t = v);
                let mut b = [s.splat(0.0); 2];
                for v in 0..registers {
                    b[v] = s.load(&panel[v * S::N..]);
                }
                for m in 0..M {
                    let x = s.splat(rows[m][j]);
                    for v in 0..registers {
                        sums[m][p][v] = s.fma(x, b[v], sums[m][p][v]);
                    }
                }
            }
        }
    }
    for m in 0..M {
        if width == P * PANEL {
            for p in 0..P {
                for v in 0..registers {
                    s.store(&mut to[m][p * PANEL + v * S::N..], sums[m][p][v]);
                }
            }
            continue;
        }
        let mut last = [[0.0f32; PANEL]; P];
        let last = last.as_flattened_mut();
        for p in 0..P {
            for v in 0..registers {
                s.store(&mut last[p * PANEL + v * S::N..], sums[m][p][v]);
            }
        }
        to[m].iter_mut().zip(last).for_each(|(t, v)| *t = *v);
    }
}
