//! The innermost loops: a few rows of a times one or more panels of b, the sums in registers.
#![allow(unsafe_code)]

use super::{Block, PANEL, Product, ROWS, Start};
use crate::disjoint::DisjointMut;
use crate::lanes::Lanes;

/// Where a tile is computed.
#[derive(Clone, Copy)]
struct At {
    row: usize,
    column: usize,
    /// The last column of the part, exclusive.
    end: usize,
    depth: (usize, usize),
}

#[inline(always)]
pub(super) fn block<S: Lanes>(
    s: S,
    product: &Product<'_>,
    rows: (usize, usize),
    columns: (usize, usize),
    depth: (usize, usize),
    block: Block<'_>,
    out: &DisjointMut<'_, f32>,
) {
    let count = rows.1 - rows.0;
    let mut at = At { row: rows.0, column: columns.0, end: columns.1, depth };
    // Few rows: several panels side by side, so that enough sums are under way.
    if count <= 3 {
        while at.column < columns.1 {
            let left = columns.1 - at.column;
            let b = Block { b: &block.b[(at.column - columns.0) / PANEL * block.panel..], ..block };
            let wide = left >= 4 * PANEL;
            match (count, wide) {
                (1, true) => tile::<S, 1, 4>(s, product, at, b, out),
                (1, false) => tile::<S, 1, 1>(s, product, at, b, out),
                (2, true) => tile::<S, 2, 2>(s, product, at, b, out),
                (2, false) => tile::<S, 2, 1>(s, product, at, b, out),
                (_, true) => tile::<S, 3, 2>(s, product, at, b, out),
                (_, false) => tile::<S, 3, 1>(s, product, at, b, out),
            }
            at.column += match (count, wide) {
                (1, true) => 4 * PANEL,
                (_, true) => 2 * PANEL,
                _ => PANEL,
            };
        }
        return;
    }
    let mut first = rows.0;
    while first < rows.1 {
        let last = (first + ROWS).min(rows.1);
        at.column = columns.0;
        while at.column < columns.1 {
            let b = Block { b: &block.b[(at.column - columns.0) / PANEL * block.panel..], ..block };
            at.row = first;
            while at.row < last {
                let left = last - at.row;
                if S::N == 16 && left >= 12 {
                    tile::<S, 12, 1>(s, product, at, b, out);
                    at.row += 12;
                    continue;
                }
                match left {
                    1 => tile::<S, 1, 1>(s, product, at, b, out),
                    2 => tile::<S, 2, 1>(s, product, at, b, out),
                    3 => tile::<S, 3, 1>(s, product, at, b, out),
                    4 => tile::<S, 4, 1>(s, product, at, b, out),
                    5 => tile::<S, 5, 1>(s, product, at, b, out),
                    _ => tile::<S, 6, 1>(s, product, at, b, out),
                }
                at.row += left.min(6);
            }
            at.column += PANEL;
        }
        first = last;
    }
}

/// `M` rows times `P` panels; the last panel may be cut off.
#[inline(always)]
fn tile<S: Lanes, const M: usize, const P: usize>(
    s: S,
    product: &Product<'_>,
    at: At,
    block: Block<'_>,
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
        let mut start = [[0.0f32; PANEL]; P];
        let start = start.as_flattened_mut();
        match product.start {
            _ if !first_block => start.iter_mut().zip(&*to[m]).for_each(|(s, &o)| *s = o),
            Start::Zero => continue,
            Start::Out => start.iter_mut().zip(&*to[m]).for_each(|(s, &o)| *s = o),
            Start::Row(values) => start.fill(values[at.row + m]),
            Start::Column(values) => start.iter_mut().zip(&values[at.column..]).for_each(|(s, &v)| *s = v),
        }
        for p in 0..P {
            for v in 0..registers {
                sums[m][p][v] = s.load(&start[p * PANEL + v * S::N..]);
            }
        }
    }
    // The end of a matrix that is read as it lies may have no whole panel left.
    let needed = k.saturating_sub(1) * block.row + (P - 1) * block.panel + PANEL;
    if width == P * PANEL || block.b.len() >= needed {
        let b = &block.b[..if k == 0 { 0 } else { needed }];
        for j in 0..k {
            for p in 0..P {
                let panel = &b[j * block.row + p * block.panel..][..PANEL];
                let mut b = [s.splat(0.0); 2];
                for v in 0..registers {
                    b[v] = s.load(&panel[v * S::N..]);
                }
                // One broadcast at a time: the sums and b fill the registers.
                for m in 0..M {
                    let x = s.splat(rows[m][j]);
                    for v in 0..registers {
                        sums[m][p][v] = s.fma(x, b[v], sums[m][p][v]);
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
                let from = (j * block.row + p * block.panel).min(block.b.len());
                let own = width.saturating_sub(p * PANEL).min(PANEL);
                panel.iter_mut().zip(block.b[from..].iter().take(own)).for_each(|(t, &v)| *t = v);
                let mut b = [s.splat(0.0); 2];
                for v in 0..registers {
                    b[v] = s.load(&panel[v * S::N..]);
                }
                // One broadcast at a time: the sums and b fill the registers.
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
