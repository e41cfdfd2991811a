//! Products for few rows of activations: each row of weights is read once, unpacked into registers, and multiplied with
//! all rows of activations.

use std::ops::Range;

use heirloom_formats::Unpack;
use heirloom_simd::{BLOCK, BLOCKS, Kernel, Simd, prefetch};

use super::activations::{Activations, QuantizedStep};
use super::store::Store;

/// The most bytes that eight records of one block take.
const LONGEST_STEP: usize = 8 * 34;

/// Rows `rows` of the weight times the activations, of which there are at most [`super::FEW_QUANTIZED`].
pub(crate) struct Vector<'a, U> {
    pub(crate) weight: &'a [u8],
    pub(crate) rows: Range<usize>,
    pub(crate) activations: Activations<'a>,
    pub(crate) store: &'a Store<'a>,
    pub(crate) format: std::marker::PhantomData<U>,
}

/// The sums of one half, for each row of activations.
#[inline(always)]
fn half<S: Simd, U: Unpack, const M: usize>(
    s: S,
    records: &[u8],
    half: usize,
    x: [&QuantizedStep; M],
) -> [S::Half; M] {
    let codes = U::codes(s, records, half);
    let mut sums = [s.zero_half(); M];
    for m in 0..M {
        let x = &x[m].codes[half];
        sums[m] = if U::SIGNED { s.dot_signed(codes, x) } else { s.dot(U::MAX, codes, x) };
    }
    sums
}

/// A step whose sums are not yet scaled and added.
#[derive(Clone, Copy)]
struct Pending<S: Simd, const M: usize> {
    sums: [[S::Half; M]; 2],
    /// Instead of `sums`, with [`Unpack::GROUPS`].
    groups: [S::I32x8; M],
    /// Where [`early`] says so.
    scales: S::F32x8,
    minima: S::F32x8,
}

/// Whether a step's scales are unpacked with its codes, not when they are used: where both come of the same loads and
/// there are registers to keep them.
const fn early<S: Simd, U: Unpack>() -> bool {
    S::ROWS == 2 && U::MAX == 31 && U::RECORD_BLOCKS == 1
}

#[inline(always)]
fn scales<S: Simd, U: Unpack>(s: S, records: &[u8], whole: bool) -> [S::F32x8; 2] {
    if whole {
        [U::scales(s, records), U::minima(s, records)]
    } else {
        [U::scales_half(s, records), U::minima_half(s, records)]
    }
}

/// The sums of one step, or of its first half.
#[inline(always)]
fn sums<S: Simd, U: Unpack, const M: usize>(
    s: S,
    records: &[u8],
    x: [&QuantizedStep; M],
    whole: bool,
) -> Pending<S, M> {
    let [scales, minima] =
        if const { early::<S, U>() } { scales::<S, U>(s, records, whole) } else { [s.splat_f32x8(0.0); 2] };
    let mut pending =
        Pending { sums: [[s.zero_half(); M]; 2], groups: [s.i32x8(&[0; BLOCKS]); M], scales, minima };
    if U::GROUPS {
        let (groups, codes) = (U::groups(records), [U::codes(s, records, 0), U::codes(s, records, 1)]);
        for m in 0..M {
            pending.groups[m] = s.dot_groups(codes, &x[m].codes, &groups);
        }
    } else {
        pending.sums[0] = half::<S, U, M>(s, records, 0, x);
        if whole {
            pending.sums[1] = half::<S, U, M>(s, records, 1, x);
        }
    }
    pending
}

/// Adds the products of one step, or of its first half, to the accumulators.
#[inline(always)]
fn add<S: Simd, U: Unpack, const M: usize>(
    s: S,
    records: &[u8],
    x: [&QuantizedStep; M],
    pending: Pending<S, M>,
    acc: &mut [S::F32x8; M],
    whole: bool,
) {
    let groups = U::groups(records);
    let [scales, minima] = if const { early::<S, U>() } {
        [pending.scales, pending.minima]
    } else {
        scales::<S, U>(s, records, whole)
    };
    for m in 0..M {
        let mut sums;
        if U::GROUPS {
            sums = pending.groups[m];
            sums = s.sub_scaled(sums, s.scale_sums(&groups, &x[m].group_sums), U::OFFSET);
        } else {
            sums = s.join([pending.sums[0][m], pending.sums[1][m]]);
            let offset = if U::SIGNED { S::SIGNED_OFFSET } else { U::OFFSET };
            if offset != 0 {
                sums = s.sub_scaled(sums, s.i32x8(&x[m].sums), offset);
            }
        }
        let scales = s.mul_f32x8(scales, s.load_f32x8(&x[m].scales));
        acc[m] = s.fma_f32x8(s.to_f32x8(sums), scales, acc[m]);
        if U::MINIMA {
            acc[m] = s.fma_f32x8(minima, s.load_f32x8(&x[m].scaled_sums), acc[m]);
        }
    }
}

/// Brings what is read soon near: `bytes` of `group` from `from` on are read now, all of it in this order; its rows are
/// `short` where they have fewer than [`Simd::SHORT_ROW`] bytes.
#[inline(always)]
pub(super) fn look_ahead<S: Simd>(group: &[u8], from: usize, bytes: usize, short: bool) {
    let (mut ahead, end) = (from, from + bytes);
    if S::SHORT_ROW > 0 && short {
        while ahead < end {
            prefetch::<false>(group, S::SHORT_NEAR + ahead);
            ahead += 64;
        }
        return;
    }
    while ahead < end {
        if S::NEAR > 0 {
            prefetch::<false>(group, S::NEAR + ahead);
        }
        if S::FAR > 0 {
            prefetch::<true>(group, S::FAR + ahead);
        }
        ahead += 64;
    }
}

/// The products of `R` rows, one behind the other in `group`, still in eight lanes.
#[inline(always)]
fn products<S: Simd, U: Unpack, const M: usize, const R: usize>(
    s: S,
    group: &[u8],
    row_bytes: usize,
    x: [&[QuantizedStep]; M],
) -> [[S::F32x8; M]; R] {
    let mut acc = [[s.splat_f32x8(0.0); M]; R];
    let step_bytes = const { U::RECORD_BYTES * (BLOCKS / U::RECORD_BLOCKS) };
    let (steps, rest) = (row_bytes / step_bytes, row_bytes % step_bytes);
    let short = U::RECORD_BLOCKS == 1 && row_bytes < S::SHORT_ROW;
    let at = |row: usize, step: usize| &group[row * row_bytes + step * step_bytes..][..step_bytes];
    // Each step's sums are completed while the next step is unpacked: the chain from its codes to the accumulators is
    // longer than what the processor looks ahead.
    if steps > 0 {
        look_ahead::<S>(group, 0, R * step_bytes, short);
        let mut pending = [sums::<S, U, M>(s, at(0, 0), x.map(|x| &x[0]), true); R];
        for r in 1..R {
            pending[r] = sums::<S, U, M>(s, at(r, 0), x.map(|x| &x[0]), true);
        }
        for step in 1..steps {
            look_ahead::<S>(group, R * step * step_bytes, R * step_bytes, short);
            let (last, now) = (x.map(|x| &x[step - 1]), x.map(|x| &x[step]));
            for r in 0..R {
                let sums = sums::<S, U, M>(s, at(r, step), now, true);
                add::<S, U, M>(s, at(r, step - 1), last, pending[r], &mut acc[r], true);
                pending[r] = sums;
            }
        }
        for r in 0..R {
            add::<S, U, M>(s, at(r, steps - 1), x.map(|x| &x[steps - 1]), pending[r], &mut acc[r], true);
        }
    }
    if U::RECORD_BLOCKS == 1 && rest > 0 {
        look_ahead::<S>(group, R * steps * step_bytes, R * rest, short);
        let x = x.map(|x| &x[steps]);
        for r in 0..R {
            let rest = &group[r * row_bytes + steps * step_bytes..][..rest];
            last::<S, U, M>(s, rest, x, &mut acc[r]);
        }
    }
    acc
}

/// Adds the products of a row's last blocks, which are less than a step.
#[inline(always)]
fn last<S: Simd, U: Unpack, const M: usize>(
    s: S,
    rest: &[u8],
    x: [&QuantizedStep; M],
    acc: &mut [S::F32x8; M],
) {
    let half_bytes = 4 * U::RECORD_BYTES;
    if rest.len() == half_bytes {
        let sums = sums::<S, U, M>(s, rest, x, false);
        return add::<S, U, M>(s, rest, x, sums, acc, false);
    }
    let mut records = [0; LONGEST_STEP];
    for (to, from) in records.iter_mut().zip(rest) {
        *to = *from;
    }
    let whole = rest.len() > half_bytes;
    let records = &records[..if whole { 2 * half_bytes } else { half_bytes }];
    let sums = sums::<S, U, M>(s, records, x, whole);
    add::<S, U, M>(s, records, x, sums, acc, whole);
}

impl<U: Unpack> Vector<'_, U> {
    #[inline(always)]
    fn rows<S: Simd>(self, s: S) {
        let Vector { weight, ref rows, activations, .. } = self;
        let row_bytes = activations.k / (BLOCK * U::RECORD_BLOCKS) * U::RECORD_BYTES;
        let mut n = rows.start;
        while n < rows.end {
            let count = (rows.end - n).min(4);
            let weight = &weight[n * row_bytes..(n + count) * row_bytes];
            // The rows of weights stay near while all activations pass.
            let mut first = 0;
            while first < activations.rows {
                first += match activations.rows - first {
                    1 => self.few::<S, 1>(s, weight, row_bytes, n, first),
                    2 => self.few::<S, 2>(s, weight, row_bytes, n, first),
                    _ => self.few::<S, 4>(s, weight, row_bytes, n, first),
                };
            }
            n += count;
        }
    }

    /// At most four rows of weights, the first of which is row `n`, times `M` rows of activations from `first` on.
    #[inline(always)]
    fn few<S: Simd, const M: usize>(
        &self,
        s: S,
        weight: &[u8],
        row_bytes: usize,
        n: usize,
        first: usize,
    ) -> usize {
        let activations = self.activations;
        let mut x: [&[QuantizedStep]; M] = [&[]; M];
        for (m, x) in x.iter_mut().enumerate() {
            // Beyond the last row its products are computed again, and not stored.
            *x = activations.row_steps((first + m).min(activations.rows - 1));
        }
        let mut acc = [[s.splat_f32x8(0.0); 4]; M];
        let count = weight.len() / row_bytes;
        let mut done = 0;
        if S::ROWS == 2 && M == 1 {
            for pair in weight.chunks_exact(2 * row_bytes) {
                let of_pair = products::<S, U, M, 2>(s, pair, row_bytes, x);
                for m in 0..M {
                    (acc[m][done & 3], acc[m][(done + 1) & 3]) = (of_pair[0][m], of_pair[1][m]);
                }
                done += 2;
            }
        }
        for row in weight[done * row_bytes..].chunks_exact(row_bytes) {
            let [of_row] = products::<S, U, M, 1>(s, row, row_bytes, x);
            for m in 0..M {
                acc[m][done & 3] = of_row[m];
            }
            done += 1;
        }
        for m in 0..M.min(activations.rows - first) {
            self.store.few(first + m, n, &s.sum4(acc[m])[..count]);
        }
        M
    }
}

impl<U: Unpack> Kernel for Vector<'_, U> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.rows(s)
    }
}
