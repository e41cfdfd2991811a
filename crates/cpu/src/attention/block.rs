//! One block of keys and values against a few query rows: scores, online softmax, weighted sum.

use heirloom_mem::{Tensor, ViewError};

use crate::lanes::{LaneElement, Lanes};

/// Positions per block: the block's keys and values, as f32, stay in the first cache level.
pub(super) const BLOCK: usize = 64;

/// Query rows of one task and what has been accumulated for them.
pub(super) struct Rows<'a> {
    /// `[rows, dk]`: queries times the scale, each row filled up with zeros to `dk`.
    pub(super) q: &'a [f32],
    /// `[rows, dv]`: the sum of `exp(score - max) * value` so far.
    pub(super) acc: &'a mut [f32],
    /// `[rows]`: the largest score so far.
    pub(super) max: &'a mut [f32],
    /// `[rows]`: the sum of `exp(score - max)` so far.
    pub(super) sum: &'a mut [f32],
}

/// Scratch of one task, all f32: `[BLOCK, dk]`, `[BLOCK, dv]`, `[rows, BLOCK]`.
pub(super) struct Scratch<'a> {
    pub(super) k: &'a mut [f32],
    pub(super) v: &'a mut [f32],
    pub(super) scores: &'a mut [f32],
}

/// Extents: `dk`, `dv` are the head sizes filled up to whole registers.
#[derive(Clone, Copy)]
pub(super) struct Dims {
    pub(super) head_k: usize,
    pub(super) head_v: usize,
    pub(super) dk: usize,
    pub(super) dv: usize,
}

/// Rows of one head's keys or values, which a cache in segments holds in several stretches.
pub(super) struct Parts<'a, T> {
    first: &'a [T],
    /// The stretches behind the first, and at which element each begins.
    later: Vec<(usize, &'a [T])>,
}

impl<'a, T: LaneElement> Parts<'a, T> {
    /// Head `head` of `heads`.
    ///
    /// # Errors
    /// When the rows are not dense within each stretch, or of another type.
    #[inline(always)]
    pub(super) fn of(tensor: &'a Tensor, heads: usize, head: usize) -> Result<Parts<'a, T>, ViewError> {
        let mut parts = Parts { first: &[], later: Vec::new() };
        let mut len = 0;
        tensor.block_parts(heads, head, |part: &[T]| {
            match len {
                0 => parts.first = part,
                _ => parts.later.push((len, part)),
            }
            len += part.len();
        })?;
        Ok(parts)
    }

    /// Rows `at..at + n` of `d` elements as f32 rows of `to_d`.
    #[inline(always)]
    fn widen<S: Lanes>(&self, s: S, (at, n): (usize, usize), d: usize, to: &mut [f32], to_d: usize) {
        let (start, end) = (at * d, (at + n) * d);
        if end <= self.first.len() {
            return widen(s, &self.first[start..end], d, to, to_d);
        }
        let all = std::iter::once((0, self.first)).chain(self.later.iter().copied());
        for (from, part) in all {
            let (a, b) = (start.max(from), end.min(from + part.len()));
            if a < b {
                widen(s, &part[a - from..b - from], d, &mut to[(a - start) / d * to_d..], to_d);
            }
        }
    }
}

/// Takes the `n <= BLOCK` positions from `at` on into account. Row `i` sees the block's positions `seen(i)`.
#[inline(always)]
pub(super) fn attend<S: Lanes, T: LaneElement>(
    s: S,
    dims: Dims,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch<'_>,
    (keys, values): (&Parts<'_, T>, &Parts<'_, T>),
    (at, n): (usize, usize),
    seen: impl Fn(usize) -> std::ops::Range<usize>,
) {
    let count = rows.max.len();
    keys.widen(s, (at, n), dims.head_k, scratch.k, dims.dk);
    values.widen(s, (at, n), dims.head_v, scratch.v, dims.dv);
    let mut row = 0;
    while row < count {
        match count - row {
            1 => row += scores::<S, 1>(s, dims.dk, rows, scratch, row, n),
            2 => row += scores::<S, 2>(s, dims.dk, rows, scratch, row, n),
            _ => row += scores::<S, 3>(s, dims.dk, rows, scratch, row, n),
        }
    }
    for row in 0..count {
        softmax(s, dims.dv, rows, scratch, row, seen(row));
    }
    let mut row = 0;
    while row < count {
        match count - row {
            1 => row += weigh::<S, 1>(s, dims.dv, rows, scratch, row, n),
            2 => row += weigh::<S, 2>(s, dims.dv, rows, scratch, row, n),
            _ => row += weigh::<S, 3>(s, dims.dv, rows, scratch, row, n),
        }
    }
}

/// Converts rows of `d` elements to f32 rows of `to_d`, the rest of each row 0.
#[inline(always)]
pub(super) fn widen<S: Lanes, T: LaneElement>(s: S, from: &[T], d: usize, to: &mut [f32], to_d: usize) {
    for (from, to) in from.chunks_exact(d).zip(to.chunks_exact_mut(to_d)) {
        let whole = d / S::N * S::N;
        for at in (0..whole).step_by(S::N) {
            s.store(&mut to[at..], T::load(s, &from[at..]));
        }
        for at in whole..d {
            to[at] = from[at].to_f32();
        }
        to[d..].fill(0.0);
    }
}

/// Products of `R` query rows with all positions, four positions at a time.
#[inline(always)]
fn scores<S: Lanes, const R: usize>(
    s: S,
    dk: usize,
    rows: &Rows<'_>,
    scratch: &mut Scratch<'_>,
    row: usize,
    n: usize,
) -> usize {
    let q: [&[f32]; R] = std::array::from_fn(|r| &rows.q[(row + r) * dk..(row + r + 1) * dk]);
    // Positions behind `n` in the last four are whatever an earlier block left; `softmax` does not look at them.
    for four in (0..n).step_by(4) {
        let k = &scratch.k[four * dk..(four + 4) * dk];
        let (k0, k) = k.split_at(dk);
        let (k1, k) = k.split_at(dk);
        let (k2, k3) = k.split_at(dk);
        let mut acc = [[s.splat(0.0); 4]; R];
        for at in (0..dk).step_by(S::N) {
            let k = [s.load(&k0[at..]), s.load(&k1[at..]), s.load(&k2[at..]), s.load(&k3[at..])];
            for r in 0..R {
                let q = s.load(&q[r][at..]);
                acc[r][0] = s.fma(q, k[0], acc[r][0]);
                acc[r][1] = s.fma(q, k[1], acc[r][1]);
                acc[r][2] = s.fma(q, k[2], acc[r][2]);
                acc[r][3] = s.fma(q, k[3], acc[r][3]);
            }
        }
        for (r, acc) in acc.into_iter().enumerate() {
            let out = (row + r) * BLOCK + four;
            for (to, x) in scratch.scores[out..out + 4].iter_mut().zip(s.sum4(acc)) {
                *to = x;
            }
        }
    }
    R
}

/// Turns a row's scores into weights relative to the row's largest score so far.
#[inline(always)]
fn softmax<S: Lanes>(
    s: S,
    dv: usize,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch<'_>,
    row: usize,
    seen: std::ops::Range<usize>,
) {
    let scores = &mut scratch.scores[row * BLOCK..(row + 1) * BLOCK];
    if seen.is_empty() {
        return scores.fill(0.0);
    }
    scores[..seen.start].fill(f32::NEG_INFINITY);
    scores[seen.end..].fill(f32::NEG_INFINITY);
    let mut largest = s.splat(f32::NEG_INFINITY);
    for at in (0..BLOCK).step_by(S::N) {
        largest = s.max(largest, s.load(&scores[at..]));
    }
    let max = rows.max[row].max(s.largest(largest));
    if max > rows.max[row] {
        let factor = (rows.max[row] - max).exp();
        rows.max[row] = max;
        rows.sum[row] *= factor;
        let acc = &mut rows.acc[row * dv..(row + 1) * dv];
        for at in (0..dv).step_by(S::N) {
            let scaled = s.mul(s.load(&acc[at..]), s.splat(factor));
            s.store(&mut acc[at..], scaled);
        }
    }
    let max = s.splat(if max == f32::NEG_INFINITY { 0.0 } else { max });
    let mut sum = s.splat(0.0);
    for at in (0..BLOCK).step_by(S::N) {
        let p = s.exp(s.sub(s.load(&scores[at..]), max));
        sum = s.add(sum, p);
        s.store(&mut scores[at..], p);
    }
    rows.sum[row] += s.sum(sum);
}

/// Adds the values, weighted, to `R` rows, four registers of a row at a time.
#[inline(always)]
fn weigh<S: Lanes, const R: usize>(
    s: S,
    dv: usize,
    rows: &mut Rows<'_>,
    scratch: &Scratch<'_>,
    row: usize,
    n: usize,
) -> usize {
    let mut at = 0;
    while at + 4 * S::N <= dv {
        weigh_tile::<S, R, 4>(s, dv, rows, scratch, row, n, at);
        at += 4 * S::N;
    }
    while at < dv {
        weigh_tile::<S, R, 1>(s, dv, rows, scratch, row, n, at);
        at += S::N;
    }
    R
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "counted loops keep the accumulators in registers")]
fn weigh_tile<S: Lanes, const R: usize, const C: usize>(
    s: S,
    dv: usize,
    rows: &mut Rows<'_>,
    scratch: &Scratch<'_>,
    row: usize,
    n: usize,
    at: usize,
) {
    let mut acc = [[s.splat(0.0); C]; R];
    for (r, acc) in acc.iter_mut().enumerate() {
        for (c, acc) in acc.iter_mut().enumerate() {
            *acc = s.load(&rows.acc[(row + r) * dv + at + c * S::N..]);
        }
    }
    let weights: [&[f32]; R] =
        std::array::from_fn(|r| &scratch.scores[(row + r) * BLOCK..(row + r) * BLOCK + n]);
    for p in 0..n {
        let v = &scratch.v[p * dv + at..p * dv + at + C * S::N];
        let mut value = [s.splat(0.0); C];
        for c in 0..C {
            value[c] = s.load(&v[c * S::N..]);
        }
        for r in 0..R {
            let w = s.splat(weights[r][p]);
            for c in 0..C {
                acc[r][c] = s.fma(w, value[c], acc[r][c]);
            }
        }
    }
    for (r, acc) in acc.into_iter().enumerate() {
        for (c, acc) in acc.into_iter().enumerate() {
            s.store(&mut rows.acc[(row + r) * dv + at + c * S::N..], acc);
        }
    }
}
