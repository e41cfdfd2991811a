//! Products whose b lies transposed, as rows: dot products, four rows of each side at a time.
#![allow(unsafe_code)]

use heirloom_runtime::{CancelToken, Cancelled, Team};

use super::{Product, Start, share};
use crate::disjoint::DisjointMut;
use crate::lanes::{Lanes, for_level};

/// Rows of one side of a block.
const BLOCK: usize = 4;

/// Computes all of `product`, b being `lines`, `stride` apart.
pub(super) fn run(
    product: &Product<'_>,
    (lines, stride): (&[f32], usize),
    out: &DisjointMut<'_, f32>,
    team: &dyn Team,
    cancel: &CancelToken,
) -> Result<(), Cancelled> {
    let Product { m, n, k, .. } = *product;
    // The longer side is shared.
    let by_rows = m > n;
    let units = if by_rows { m } else { n }.div_ceil(BLOCK);
    let (tasks, each) = share(units, m.saturating_mul(n).saturating_mul(k), team.threads());
    team.run(tasks, &|task| {
        for unit in task * each..((task + 1) * each).min(units) {
            if cancel.is_cancelled() {
                return;
            }
            let own = |most: usize| (unit * BLOCK, ((unit + 1) * BLOCK).min(most));
            let (rows, columns) = if by_rows { (own(m), (0, n)) } else { ((0, m), own(n)) };
            strip(product.isa, product, (lines, stride), (rows, columns), out);
        }
    });
    cancel.check()
}

/// From and to.
type Span = (usize, usize);

for_level! {
    /// Some rows times some lines; one of both is at most a block.
    fn strip(
        s,
        product: &Product<'_>,
        lines: (&[f32], usize),
        part: (Span, Span),
        out: &DisjointMut<'_, f32>,
    ) {
        let (rows, columns) = part;
        for row in (rows.0..rows.1).step_by(BLOCK) {
            for column in (columns.0..columns.1).step_by(BLOCK) {
                let size = ((rows.1 - row).min(BLOCK), (columns.1 - column).min(BLOCK));
                let at = (row, column);
                let sums = match size {
                    (1, 4) => dots::<S, 1, 4>(s, product, lines, at),
                    (4, 1) => dots::<S, 4, 1>(s, product, lines, at),
                    (2, 4) => dots::<S, 2, 4>(s, product, lines, at),
                    (4, 2) => dots::<S, 4, 2>(s, product, lines, at),
                    (3, 4) => dots::<S, 3, 4>(s, product, lines, at),
                    (4, 3) => dots::<S, 4, 3>(s, product, lines, at),
                    (4, 4) => dots::<S, 4, 4>(s, product, lines, at),
                    (m, n) => {
                        let mut sums = [[0.0; BLOCK]; BLOCK];
                        for (i, sums) in sums.iter_mut().enumerate().take(m) {
                            for (j, sum) in sums.iter_mut().enumerate().take(n) {
                                *sum = dots::<S, 1, 1>(s, product, lines, (row + i, column + j))[0][0];
                            }
                        }
                        sums
                    }
                };
                for (i, sums) in sums.iter().enumerate().take(size.0) {
                    let from = (row + i) * product.ldo + column;
                    // SAFETY: parts of different tasks have no row and column in common.
                    let to = unsafe { out.part(from..from + size.1) };
                    for (j, (to, sum)) in to.iter_mut().zip(sums).enumerate() {
                        *to = sum + match product.start {
                            Start::Zero => 0.0,
                            Start::Row(values) => values[row + i],
                            Start::Column(values) => values[column + j],
                            Start::Out => *to,
                        };
                    }
                }
            }
        }
    }
}

/// The products of `M` rows with `N` lines.
// Registers are indexed by constants, and the loops unrolled.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn dots<S: Lanes, const M: usize, const N: usize>(
    s: S,
    product: &Product<'_>,
    (lines, stride): (&[f32], usize),
    at: (usize, usize),
) -> [[f32; BLOCK]; BLOCK] {
    let depth = product.k;
    let a: [&[f32]; M] = std::array::from_fn(|m| &product.a[(at.0 + m) * product.lda..][..depth]);
    let b: [&[f32]; N] = std::array::from_fn(|n| &lines[(at.1 + n) * stride..][..depth]);
    let mut sums = [[s.splat(0.0); N]; M];
    let whole = depth / S::N * S::N;
    for at in (0..whole).step_by(S::N) {
        let mut other = [s.splat(0.0); N];
        for n in 0..N {
            other[n] = s.load(&b[n][at..at + S::N]);
        }
        for m in 0..M {
            let own = s.load(&a[m][at..at + S::N]);
            for n in 0..N {
                sums[m][n] = s.fma(own, other[n], sums[m][n]);
            }
        }
    }
    let mut out = [[0.0f32; BLOCK]; BLOCK];
    for m in 0..M {
        let four: [S::V; BLOCK] = std::array::from_fn(|n| if n < N { sums[m][n] } else { s.splat(0.0) });
        out[m] = s.sum4(four);
        for n in 0..N {
            out[m][n] += a[m][whole..].iter().zip(&b[n][whole..]).map(|(a, b)| a * b).sum::<f32>();
        }
    }
    out
}
