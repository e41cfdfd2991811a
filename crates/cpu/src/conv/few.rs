//! Convolutions with few output places: their windows as rows, and dot products with each row of the weight.
#![allow(unsafe_code)]

use heirloom_ops::convolution::Convolution;
use heirloom_ops::window::planes;
use heirloom_runtime::RunCx;

use super::Call;
use super::columns::Windows;
use crate::disjoint::DisjointMut;
use crate::gemm::{PANEL, pack_all, share};
use crate::lanes::{Lanes, for_level};

/// Fills `out` for one group: of the input `x`, the weight and the bias.
pub(super) fn run(
    call: &Call<'_>,
    cx: &RunCx<'_>,
    (x, w, bias): (&[f32], &[f32], Option<&[f32]>),
    out: &mut [f32],
) {
    let Convolution { channels, maps, ref axes, .. } = *call.shape;
    let (_, output, kernel) = planes(axes);
    let depth = channels * kernel;
    let mut panel = vec![0.0; depth * PANEL];
    pack_all(&Windows { x, axes }, depth, output, &mut panel);
    let mut rows = vec![0.0; output * depth];
    for (at, row) in rows.chunks_exact_mut(depth).enumerate() {
        row.iter_mut().zip(panel.chunks_exact(PANEL)).for_each(|(r, p)| *r = p[at]);
    }
    let to = DisjointMut::new(out);
    let units = maps.div_ceil(MAPS);
    let (tasks, each) = share(units, maps * depth * output, cx.team().threads());
    cx.team().run(tasks, &|task| {
        for unit in task * each..((task + 1) * each).min(units) {
            let (first, last) = (unit * MAPS, ((unit + 1) * MAPS).min(maps));
            // SAFETY: each map is written by one task.
            let to = unsafe { to.part(first * output..last * output) };
            let w = &w[first * depth..last * depth];
            dots(call.isa, w, &rows, depth, bias.map_or(&[], |b| &b[first..last]), to);
        }
    });
}

/// Maps side by side.
const MAPS: usize = 4;

for_level! {
    /// All products of up to four rows of w with the rows.
    fn dots(s, w: &[f32], rows: &[f32], depth: usize, bias: &[f32], to: &mut [f32]) {
        let output = rows.len() / depth;
        let mut at = 0;
        while at < output {
            let x = &rows[at * depth..];
            let whole = w.len() == MAPS * depth;
            let (sums, count) = match output - at {
                1 if whole => (some::<S, MAPS, 1>(s, w, x, depth), 1),
                2 if whole => (some::<S, MAPS, 2>(s, w, x, depth), 2),
                3 if whole => (some::<S, MAPS, 3>(s, w, x, depth), 3),
                _ if whole => (some::<S, MAPS, 4>(s, w, x, depth), 4),
                _ => {
                    let mut sums = [[0.0; 4]; MAPS];
                    for (sums, w) in sums.iter_mut().zip(w.chunks_exact(depth)) {
                        sums[0] = some::<S, 1, 1>(s, w, x, depth)[0][0];
                    }
                    (sums, 1)
                }
            };
            for (map, sums) in sums.iter().enumerate().take(w.len() / depth) {
                for (i, sum) in sums[..count].iter().enumerate() {
                    to[map * output + at + i] = sum + bias.get(map).copied().unwrap_or(0.0);
                }
            }
            at += count;
        }
    }
}

/// The products of `M` rows of w with `N` rows.
#[inline(always)]
fn some<S: Lanes, const M: usize, const N: usize>(
    s: S,
    w: &[f32],
    x: &[f32],
    depth: usize,
) -> [[f32; 4]; MAPS] {
    let w: [&[f32]; M] = std::array::from_fn(|m| &w[m * depth..][..depth]);
    let x: [&[f32]; N] = std::array::from_fn(|n| &x[n * depth..][..depth]);
    let mut sums = [[s.splat(0.0); N]; M];
    let whole = depth / S::N * S::N;
    for at in (0..whole).step_by(S::N) {
        let mut other = [s.splat(0.0); N];
        for n in 0..N {
            other[n] = s.load(&x[n][at..at + S::N]);
        }
        for m in 0..M {
            let own = s.load(&w[m][at..at + S::N]);
            for n in 0..N {
                sums[m][n] = s.fma(own, other[n], sums[m][n]);
            }
        }
    }
    let mut out = [[0.0f32; 4]; MAPS];
    for m in 0..M {
        let four: [S::V; 4] = std::array::from_fn(|n| if n < N { sums[m][n] } else { s.splat(0.0) });
        out[m] = s.sum4(four);
        for n in 0..N {
            out[m][n] += w[m][whole..].iter().zip(&x[n][whole..]).map(|(w, x)| w * x).sum::<f32>();
        }
    }
    out
}
