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
    groups: &[u8; 16],
    x: [&QuantizedStep; M],
) -> [S::Half; M] {
    let codes = U::codes(s, records, half);
    let scales = s.quarter_scales(groups, half);
    let mut sums = [s.zero_half(); M];
    for m in 0..M {
        let x = &x[m].codes[half];
        sums[m] = if U::GROUPS {
            s.dot_scaled(codes, x, scales)
        } else if U::SIGNED {
            s.dot_signed(codes, x)
        } else {
            s.dot(U::MAX, codes, x)
        };
    }
    sums
}

/// The sums of one step, or of its first half.
#[inline(always)]
fn sums<S: Simd, U: Unpack, const M: usize>(
    s: S,
    records: &[u8],
    x: [&QuantizedStep; M],
    whole: bool,
) -> [[S::Half; M]; 2] {
    let groups = U::groups(records);
    let first = half::<S, U, M>(s, records, 0, &groups, x);
    let last = if whole { half::<S, U, M>(s, records, 1, &groups, x) } else { [s.zero_half(); M] };
    [first, last]
}

/// Adds the products of one step, or of its first half, to the accumulators.
#[inline(always)]
fn add<S: Simd, U: Unpack, const M: usize>(
    s: S,
    records: &[u8],
    x: [&QuantizedStep; M],
    sums: [[S::Half; M]; 2],
    acc: &mut [S::F32x8; M],
    whole: bool,
) {
    let groups = U::groups(records);
    let scales = if whole { U::scales(s, records) } else { U::scales_half(s, records) };
    let minima = if whole { U::minima(s, records) } else { U::minima_half(s, records) };
    for m in 0..M {
        let mut sums = s.join([sums[0][m], sums[1][m]]);
        if U::GROUPS {
            sums = s.sub_scaled(sums, s.scale_sums(&groups, &x[m].group_sums), U::OFFSET);
        } else {
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

/// Brings later steps near.
#[inline(always)]
fn look_ahead<S: Simd>(records: &[u8], step_bytes: usize) {
    let mut ahead = 0;
    while ahead < step_bytes {
        prefetch::<false>(records, S::NEAR + ahead);
        if S::FAR > 0 {
            prefetch::<true>(records, S::FAR + ahead);
        }
        ahead += 64;
    }
}

/// The products of one row, still in eight lanes.
#[inline(always)]
fn row<S: Simd, U: Unpack, const M: usize>(s: S, row: &[u8], x: [&[QuantizedStep]; M]) -> [S::F32x8; M] {
    let mut acc = [s.splat_f32x8(0.0); M];
    let step_bytes = const { U::RECORD_BYTES * (BLOCKS / U::RECORD_BLOCKS) };
    let mut chunks = row.chunks_exact(step_bytes);
    let rest = chunks.remainder();
    let mut index = 0;
    // Each step's sums are completed while the next step is unpacked: the chain from its codes to the accumulators is
    // longer than what the processor looks ahead.
    if let Some(mut previous) = chunks.next() {
        look_ahead::<S>(previous, step_bytes);
        let mut pending = sums::<S, U, M>(s, previous, x.map(|x| &x[0]), true);
        for records in chunks {
            look_ahead::<S>(records, step_bytes);
            let now = sums::<S, U, M>(s, records, x.map(|x| &x[index + 1]), true);
            add::<S, U, M>(s, previous, x.map(|x| &x[index]), pending, &mut acc, true);
            (previous, pending) = (records, now);
            index += 1;
        }
        add::<S, U, M>(s, previous, x.map(|x| &x[index]), pending, &mut acc, true);
        index += 1;
    }
    if U::RECORD_BLOCKS == 1 && !rest.is_empty() {
        look_ahead::<S>(rest, rest.len());
        let half_bytes = 4 * U::RECORD_BYTES;
        let x = x.map(|x| &x[index]);
        if rest.len() == half_bytes {
            let sums = sums::<S, U, M>(s, rest, x, false);
            add::<S, U, M>(s, rest, x, sums, &mut acc, false);
        } else {
            let mut records = [0; LONGEST_STEP];
            for (to, from) in records.iter_mut().zip(rest) {
                *to = *from;
            }
            let whole = rest.len() > half_bytes;
            let records = &records[..if whole { step_bytes } else { half_bytes }];
            let sums = sums::<S, U, M>(s, records, x, whole);
            add::<S, U, M>(s, records, x, sums, &mut acc, whole);
        }
    }
    acc
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
        let mut count = 0;
        for weight in weight.chunks_exact(row_bytes) {
            let of_row = row::<S, U, M>(s, weight, x);
            for m in 0..M {
                acc[m][count & 3] = of_row[m];
            }
            count += 1;
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
