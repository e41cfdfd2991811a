//! Products with weights whose codes, scales and zero points lie apart, as ONNX Runtime's `MatMulNBits` has them: blocks of
//! at least 32 unsigned codes of 4 or 8 bits along each row.
#![allow(unsafe_code)]

use std::ops::Range;

use heirloom_mem::DType;
use heirloom_runtime::{CancelToken, Cancelled, Soon, Team};
use heirloom_simd::{BLOCK, BLOCKS, HalfActivations, Isa, Kernel, LANE_OF_BLOCK, STEP, Simd};
use heirloom_types::bits;

use super::activations::{Activations, QuantizedStep};
use super::shares::Shares;
use super::store::{Bias, Store};
use super::vector::look_ahead;
use super::{in_pieces, pieces_of_rows};
use crate::gemm::{Columns, PANEL};

/// The zero points of a [`Split`].
#[derive(Clone, Copy)]
pub(crate) enum Zeros<'a> {
    /// Each is half of the codes' range.
    Middle,
    /// Codes packed like the weights', a row in whole bytes.
    Packed(&'a [u8]),
    /// Numbers of the scales' type.
    Numbers(&'a [u8]),
}

/// A weight [n, k] of the parts in which it lies.
#[derive(Clone, Copy)]
pub(crate) struct Split<'a> {
    pub(crate) codes: &'a [u8],
    pub(crate) scales: &'a [u8],
    /// FLOAT, FLOAT16 or BFLOAT16.
    pub(crate) dtype: DType,
    pub(crate) zeros: Zeros<'a>,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) bits: u32,
    pub(crate) block: usize,
}

/// A number of a list of FLOAT, FLOAT16 or BFLOAT16.
#[inline(always)]
fn number(dtype: DType, list: &[u8], at: usize) -> f32 {
    match dtype {
        DType::Float => f32::from_le_bytes(*list[4 * at..].first_chunk().expect("one for each block")),
        DType::Float16 => half::f16::from_le_bytes(*two(list, at)).to_f32(),
        _ => half::bf16::from_le_bytes(*two(list, at)).to_f32(),
    }
}

#[inline(always)]
fn two(list: &[u8], at: usize) -> &[u8; 2] {
    list[2 * at..].first_chunk().expect("one for each block")
}

impl Split<'_> {
    /// Blocks of a row.
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.k.div_ceil(self.block)
    }

    /// Bytes of the codes of a row, whose last block is filled up.
    #[inline(always)]
    fn row_bytes(&self) -> usize {
        self.blocks() * (self.block * self.bits as usize / 8)
    }

    /// The zero point of a block of a row.
    #[inline(always)]
    fn zero(&self, row: usize, block: usize) -> f32 {
        let blocks = self.blocks();
        match self.zeros {
            Zeros::Middle => (1u32 << (self.bits - 1)) as f32,
            Zeros::Numbers(list) => number(self.dtype, list, row * blocks + block),
            Zeros::Packed(bytes) => {
                let bits = self.bits as usize;
                let byte = bytes[row * (blocks * bits).div_ceil(8) + block * bits / 8];
                let mask = ((1u32 << bits) - 1) as u8;
                f32::from(byte >> (block * bits % 8) & mask)
            }
        }
    }

    /// Whether [`Split::run`] takes it.
    pub(crate) fn is_quick(&self) -> bool {
        self.block >= BLOCK && matches!(self.bits, 4 | 8)
    }

    /// How it is read with one row of activations.
    pub(crate) fn soon(&self, threads: usize) -> Soon {
        let row_bytes = self.row_bytes();
        let share = Shares::share(self.n, pieces_of_rows(row_bytes), threads) * row_bytes;
        Soon { address: self.codes.as_ptr().addr(), bytes: self.codes.len(), share }
    }

    /// Elements of a row of activations as [`Split::run`] takes them.
    pub(crate) fn padded(&self) -> usize {
        self.k.next_multiple_of(BLOCK)
    }

    /// Rows of activations in the order of the codes: where two codes share a byte, those at even places of each block
    /// come first. `to` has [`Split::padded`] elements for each row.
    pub(crate) fn arrange(&self, x: &[f32], to: &mut [f32]) {
        let padded = self.padded();
        for (x, to) in x.chunks_exact(self.k).zip(to.chunks_exact_mut(padded)) {
            to.fill(0.0);
            for (x, to) in x.chunks(BLOCK).zip(to.chunks_exact_mut(BLOCK)) {
                if self.bits == 4 {
                    let (even, odd) = to.split_at_mut(BLOCK / 2);
                    for (pair, (even, odd)) in x.chunks(2).zip(even.iter_mut().zip(odd)) {
                        *even = pair[0];
                        *odd = pair.get(1).copied().unwrap_or(0.0);
                    }
                } else {
                    to.iter_mut().zip(x).for_each(|(to, &x)| *to = x);
                }
            }
        }
    }

    /// The product with quantized activations of [`Split::padded`] elements a row, arranged.
    ///
    /// # Errors
    /// When it was cancelled.
    pub(crate) fn run(
        &self,
        isa: Isa,
        activations: Activations<'_>,
        bias: Bias<'_>,
        out: &mut [f32],
        team: &dyn Team,
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        // SAFETY: the pieces below have columns of their own.
        let store = unsafe { Store::new(out, activations.rows, self.n, 1.0, bias) };
        in_pieces(team, self.n, pieces_of_rows(self.row_bytes()), 0, &mut [], &|rows, _| {
            if !cancel.is_cancelled() {
                isa.run(Rows { split: self, rows, activations, store: &store });
            }
        });
        cancel.check()
    }

    /// Elements `from..from + to.len()` of a row, `from` at the beginning of a byte.
    fn decode(&self, row: usize, from: usize, to: &mut [f32]) {
        let bits = self.bits as usize;
        let bytes = &self.codes[row * self.row_bytes()..][..self.row_bytes()];
        let blocks = self.blocks();
        let mut at = 0;
        while at < to.len() {
            let place = from + at;
            let block = place / self.block;
            let count = ((block + 1) * self.block - place).min(to.len() - at);
            let scale = number(self.dtype, self.scales, row * blocks + block);
            let zero = self.zero(row, block);
            let (to, bytes) = (&mut to[at..at + count], &bytes[place * bits / 8..]);
            match bits {
                8 => to.iter_mut().zip(bytes).for_each(|(t, &b)| *t = (f32::from(b) - zero) * scale),
                4 => {
                    for (to, &byte) in to.chunks_mut(2).zip(bytes) {
                        for (to, code) in to.iter_mut().zip([byte & 15, byte >> 4]) {
                            *to = (f32::from(code) - zero) * scale;
                        }
                    }
                }
                _ => {
                    let mut codes = [0; 16];
                    for (group, to) in to.chunks_mut(16).enumerate() {
                        bits::unpack(bytes, self.bits, group * 16, &mut codes[..to.len()]);
                        to.iter_mut().zip(codes).for_each(|(t, c)| *t = (f32::from(c) - zero) * scale);
                    }
                }
            }
            at += count;
        }
    }
}

impl Columns for Split<'_> {
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]) {
        let rows = depth.1 - depth.0;
        let mut row = vec![0.0; rows];
        for (panel, to) in to.chunks_exact_mut((rows * PANEL).max(1)).enumerate() {
            let first = columns.0 + panel * PANEL;
            if first >= columns.1 {
                break;
            }
            for lane in 0..PANEL {
                self.decode((first + lane).min(columns.1 - 1), depth.0, &mut row);
                to[lane..].iter_mut().step_by(PANEL).zip(&row).for_each(|(t, &v)| *t = v);
            }
        }
    }
}

/// Rows `rows` of the weight times the activations.
struct Rows<'a> {
    split: &'a Split<'a>,
    rows: Range<usize>,
    activations: Activations<'a>,
    store: &'a Store<'a>,
}

/// How codes of so many bits are multiplied.
trait Width {
    const BYTES: usize;
    /// What is taken off each code before its product.
    const BASE: f32;
    fn half<S: Simd>(s: S, codes: &[u8], half: usize, x: &HalfActivations) -> S::Half;
}

struct Four;
struct Eight;

impl Width for Four {
    const BYTES: usize = STEP / 2;
    const BASE: f32 = 0.0;

    #[inline(always)]
    fn half<S: Simd>(s: S, codes: &[u8], half: usize, x: &HalfActivations) -> S::Half {
        let packed = s.load(codes[64 * half..].first_chunk().expect("a whole step"));
        let low = s.splat(15);
        s.dot(15, [s.and(packed, low), s.and(s.shr_quarters::<4, 4, 4, 4>(packed), low)], x)
    }
}

impl Width for Eight {
    const BYTES: usize = STEP;
    const BASE: f32 = 128.0;

    #[inline(always)]
    fn half<S: Simd>(s: S, codes: &[u8], half: usize, x: &HalfActivations) -> S::Half {
        let codes = &codes[128 * half..];
        let sign = s.splat(0x80);
        let signed = [s.record_quarters::<32, 0>(codes), s.record_quarters::<32, 16>(codes)];
        s.dot_signed(signed.map(|codes| s.xor(codes, sign)), x)
    }
}

impl Split<'_> {
    /// Scales and zero points (less `base`) of the blocks of step `step` of a row, in their lanes.
    #[inline(always)]
    fn parameters<S: Simd>(&self, s: S, row: usize, step: usize, base: f32) -> [S::F32x8; 2] {
        let (blocks, shift) = (self.blocks(), self.block.trailing_zeros());
        let first = row * blocks;
        if self.block >= STEP {
            let block = (step * STEP) >> shift;
            let scale = number(self.dtype, self.scales, first + block);
            return [s.splat_f32x8(scale), s.splat_f32x8(self.zero(row, block) - base)];
        }
        let (mut scales, mut zeros) = ([0.0; BLOCKS], [0.0; BLOCKS]);
        for at in 0..BLOCKS {
            // Behind the last block activations are zeros.
            let block = ((step * STEP + at * BLOCK) >> shift).min(blocks - 1);
            scales[LANE_OF_BLOCK[at]] = number(self.dtype, self.scales, first + block);
            if !matches!(self.zeros, Zeros::Middle) {
                zeros[LANE_OF_BLOCK[at]] = self.zero(row, block) - base;
            }
        }
        let zeros = match self.zeros {
            Zeros::Middle => s.splat_f32x8((1u32 << (self.bits - 1)) as f32 - base),
            _ => s.load_f32x8(&zeros),
        };
        [s.load_f32x8(&scales), zeros]
    }
}

impl Rows<'_> {
    /// The products of one step of `R` rows with `M` rows of activations.
    #[inline(always)]
    fn step<S: Simd, W: Width, const M: usize, const R: usize>(
        &self,
        s: S,
        (row, step): (usize, usize),
        codes: [&[u8]; R],
        x: [&QuantizedStep; M],
        acc: &mut [[S::F32x8; M]; R],
    ) {
        for r in 0..R {
            let [scales, zeros] = self.split.parameters(s, row + r, step, W::BASE);
            for m in 0..M {
                let halves = [0, 1].map(|half| W::half(s, codes[r], half, &x[m].codes[half]));
                let mut sums = s.join(halves);
                let own = s.i32x8(&x[m].sums);
                if W::BASE != 0.0 && S::SIGNED_OFFSET != 0 {
                    sums = s.sub_scaled(sums, own, S::SIGNED_OFFSET);
                }
                let minus = s.mul_f32x8(zeros, s.splat_f32x8(-1.0));
                let centred = s.fma_f32x8(minus, s.to_f32x8(own), s.to_f32x8(sums));
                let scales = s.mul_f32x8(scales, s.load_f32x8(&x[m].scales));
                acc[r][m] = s.fma_f32x8(centred, scales, acc[r][m]);
            }
        }
    }

    /// The products of `R` rows from `row` on with `M` rows of activations, in eight lanes.
    #[inline(always)]
    fn products<S: Simd, W: Width, const M: usize, const R: usize>(
        &self,
        s: S,
        row: usize,
        x: [&[QuantizedStep]; M],
    ) -> [[S::F32x8; M]; R] {
        let row_bytes = self.split.row_bytes();
        let group = &self.split.codes[row * row_bytes..(row + R) * row_bytes];
        let mut acc = [[s.splat_f32x8(0.0); M]; R];
        let steps = x[0].len();
        let whole = steps.min(row_bytes / W::BYTES);
        for step in 0..whole {
            look_ahead::<S>(group, R * step * W::BYTES, R * W::BYTES, row_bytes < S::SHORT_ROW);
            let mut codes: [&[u8]; R] = [&[]; R];
            for (r, codes) in codes.iter_mut().enumerate() {
                *codes = &group[r * row_bytes + step * W::BYTES..][..W::BYTES];
            }
            self.step::<S, W, M, R>(s, (row, step), codes, x.map(|x| &x[step]), &mut acc);
        }
        if whole < steps {
            let mut last = [[0u8; STEP]; R];
            for (r, last) in last.iter_mut().enumerate() {
                let rest = &group[r * row_bytes + whole * W::BYTES..(r + 1) * row_bytes];
                last.iter_mut().zip(rest).for_each(|(to, &from)| *to = from);
            }
            let mut codes: [&[u8]; R] = [&[]; R];
            codes.iter_mut().zip(&last).for_each(|(to, from)| *to = from);
            self.step::<S, W, M, R>(s, (row, whole), codes, x.map(|x| &x[whole]), &mut acc);
        }
        acc
    }

    /// At most four rows of weights from `n` on times `M` rows of activations from `first` on.
    #[inline(always)]
    fn few<S: Simd, W: Width, const M: usize>(
        &self,
        s: S,
        (n, count): (usize, usize),
        first: usize,
    ) -> usize {
        let activations = self.activations;
        let mut x: [&[QuantizedStep]; M] = [&[]; M];
        for (m, x) in x.iter_mut().enumerate() {
            // Beyond the last row its products are computed again, and not stored.
            *x = activations.row_steps((first + m).min(activations.rows - 1));
        }
        let mut acc = [[s.splat_f32x8(0.0); 4]; M];
        let mut done = 0;
        if S::ROWS == 2 && M == 1 {
            while done + 2 <= count {
                let pair = self.products::<S, W, M, 2>(s, n + done, x);
                for m in 0..M {
                    (acc[m][done & 3], acc[m][(done + 1) & 3]) = (pair[0][m], pair[1][m]);
                }
                done += 2;
            }
        }
        while done < count {
            let [one] = self.products::<S, W, M, 1>(s, n + done, x);
            for m in 0..M {
                acc[m][done & 3] = one[m];
            }
            done += 1;
        }
        for m in 0..M.min(activations.rows - first) {
            self.store.few(first + m, n, &s.sum4(acc[m])[..count]);
        }
        M
    }

    #[inline(always)]
    fn all<S: Simd, W: Width>(&self, s: S) {
        let rows = self.activations.rows;
        let mut n = self.rows.start;
        while n < self.rows.end {
            let group = (n, (self.rows.end - n).min(4));
            let mut first = 0;
            while first < rows {
                first += match rows - first {
                    1 => self.few::<S, W, 1>(s, group, first),
                    2 => self.few::<S, W, 2>(s, group, first),
                    _ => self.few::<S, W, 4>(s, group, first),
                };
            }
            n += group.1;
        }
    }
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.split.bits {
            4 => self.all::<S, Four>(s),
            _ => self.all::<S, Eight>(s),
        }
    }
}
