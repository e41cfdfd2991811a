//! Products in `f32`: for weights that are floats, and for formats without register-level unpacking (or a level without
//! quantized activations), whose rows are decoded a piece at a time.

use std::ops::Range;

use heirloom_simd::{Kernel, Simd};
use heirloom_types::{Codec, CodecError};

use super::activations::Activations;
use super::scratch::{bytes_for, carve, float_bytes};
use super::store::Store;

/// Rows of a panel.
pub(crate) const ROWS: usize = 16;

/// About how many elements of a row are decoded at a time.
const PIECE: usize = 256;

/// The most bytes of weights that are kept as floats at a time.
const PANELS_BYTES: usize = 192 * 1024;

/// Rows of weights that can be read as floats.
#[derive(Clone, Copy)]
pub(crate) enum FloatRows<'a> {
    F32,
    F16,
    BF16,
    Coded(&'a dyn Codec),
}

impl FloatRows<'_> {
    /// Bytes of a row of `k` elements.
    pub(crate) fn row_bytes(self, k: usize) -> usize {
        match self {
            FloatRows::F32 => k * 4,
            FloatRows::F16 | FloatRows::BF16 => k * 2,
            FloatRows::Coded(codec) => k / codec.elements() * codec.record_bytes(),
        }
    }

    /// Elements that are read at a time: whole records.
    fn piece(self, k: usize) -> usize {
        let elements = match self {
            FloatRows::Coded(codec) => codec.elements(),
            _ => 16,
        };
        (PIECE / elements).max(1).saturating_mul(elements).min(k.max(1))
    }

    /// Elements from `first` on, where a piece begins.
    pub(crate) fn read(self, row: &[u8], first: usize, out: &mut [f32]) -> Result<(), CodecError> {
        match self {
            FloatRows::F32 => {
                for (out, b) in out.iter_mut().zip(row[first * 4..].as_chunks::<4>().0) {
                    *out = f32::from_le_bytes(*b);
                }
            }
            FloatRows::F16 => {
                for (out, b) in out.iter_mut().zip(row[first * 2..].as_chunks::<2>().0) {
                    *out = half::f16::from_le_bytes(*b).to_f32();
                }
            }
            FloatRows::BF16 => {
                for (out, b) in out.iter_mut().zip(row[first * 2..].as_chunks::<2>().0) {
                    *out = half::bf16::from_le_bytes(*b).to_f32();
                }
            }
            FloatRows::Coded(codec) => {
                let (elements, bytes) = (codec.elements(), codec.record_bytes());
                let records = first / elements * bytes..(first + out.len()) / elements * bytes;
                codec.decode(&row[records], out)?;
            }
        }
        Ok(())
    }
}

/// How many panels a task handles at a time.
pub(crate) fn panels_at_once(k: usize) -> usize {
    (PANELS_BYTES / (k * ROWS * 4).max(1)).clamp(1, 4)
}

/// Scratch bytes of one thread.
pub(crate) fn scratch_bytes(rows: FloatRows<'_>, m: usize, k: usize) -> usize {
    let piece = rows.piece(k);
    if m <= super::FEW_ROWS {
        return bytes_for::<f32>(piece);
    }
    bytes_for::<f32>(piece.saturating_mul(ROWS))
        .saturating_add(bytes_for::<[f32; 16]>(panels_at_once(k).saturating_mul(k)))
}

/// Rows `rows` of the weight times the activations.
pub(crate) struct Floats<'a> {
    pub(crate) source: FloatRows<'a>,
    pub(crate) weight: &'a [u8],
    pub(crate) rows: Range<usize>,
    pub(crate) activations: Activations<'a>,
    pub(crate) store: &'a Store<'a>,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

/// Eight elements from bytes.
trait Element {
    const BYTES: usize;
    fn load<S: Simd>(s: S, from: &[u8]) -> S::F32x8;
}

struct F32;
struct F16;
struct BF16;

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[u8]) -> S::F32x8 {
        s.load_f32x8_bytes(from.first_chunk().expect("eight elements"))
    }
}
impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[u8]) -> S::F32x8 {
        s.load_f16x8(from.first_chunk().expect("eight elements"))
    }
}
impl Element for BF16 {
    const BYTES: usize = 2;
    #[inline(always)]
    fn load<S: Simd>(s: S, from: &[u8]) -> S::F32x8 {
        s.load_bf16x8(from.first_chunk().expect("eight elements"))
    }
}

/// Adds the products of neighbouring elements to the accumulators; a tail of less than 16 is padded.
#[inline(always)]
fn dot<S: Simd, E: Element, const M: usize>(
    s: S,
    weight: &[u8],
    x: [&[f32]; M],
    acc: &mut [[S::F32x8; 2]; M],
) {
    let chunks = weight.chunks_exact(16 * E::BYTES);
    let rest = chunks.remainder();
    let mut at = 0;
    for w in chunks {
        let w = [E::load(s, &w[..8 * E::BYTES]), E::load(s, &w[8 * E::BYTES..])];
        for m in 0..M {
            let x: &[f32; 16] = x[m][at..].first_chunk().expect("as many activations as weights");
            let (x, _) = x.as_chunks::<8>();
            acc[m][0] = s.fma_f32x8(w[0], s.load_f32x8(&x[0]), acc[m][0]);
            acc[m][1] = s.fma_f32x8(w[1], s.load_f32x8(&x[1]), acc[m][1]);
        }
        at += 16;
    }
    if !rest.is_empty() {
        let mut w = [0; 64];
        for (to, from) in w.iter_mut().zip(rest) {
            *to = *from;
        }
        let w = [E::load(s, &w[..8 * E::BYTES]), E::load(s, &w[8 * E::BYTES..16 * E::BYTES])];
        for m in 0..M {
            let mut padded = [[0.0; 8]; 2];
            for (to, from) in padded.as_flattened_mut().iter_mut().zip(&x[m][at..]) {
                *to = *from;
            }
            acc[m][0] = s.fma_f32x8(w[0], s.load_f32x8(&padded[0]), acc[m][0]);
            acc[m][1] = s.fma_f32x8(w[1], s.load_f32x8(&padded[1]), acc[m][1]);
        }
    }
}

impl Floats<'_> {
    /// For few rows of activations: each row of weights is read once.
    #[inline(always)]
    fn few<S: Simd, const M: usize>(self, s: S, first: usize) -> Result<(), CodecError> {
        let Floats { source, weight, rows, activations, store, scratch, .. } = self;
        let k = activations.k;
        let (row_bytes, piece) = (source.row_bytes(k), source.piece(k));
        let (buffer, _) = carve::<f32>(scratch, piece);
        let mut x: [&[f32]; M] = [&[]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = activations.row((first + m).min(activations.rows - 1));
        }
        let mut n = rows.start;
        while n < rows.end {
            let count = (rows.end - n).min(4);
            let mut sums = [[s.splat_f32x8(0.0); 4]; M];
            for i in 0..count {
                let row = &weight[(n + i) * row_bytes..][..row_bytes];
                let mut acc = [[s.splat_f32x8(0.0); 2]; M];
                match source {
                    FloatRows::F32 => dot::<S, F32, M>(s, row, x, &mut acc),
                    FloatRows::F16 => dot::<S, F16, M>(s, row, x, &mut acc),
                    FloatRows::BF16 => dot::<S, BF16, M>(s, row, x, &mut acc),
                    FloatRows::Coded(_) => {
                        let mut at = 0;
                        while at < k {
                            let buffer = &mut buffer[..piece.min(k - at)];
                            source.read(row, at, buffer)?;
                            dot::<S, F32, M>(s, float_bytes(buffer), x.map(|x| &x[at..]), &mut acc);
                            at += piece;
                        }
                    }
                }
                for m in 0..M {
                    sums[m][i] = s.add_f32x8(acc[m][0], acc[m][1]);
                }
            }
            for m in 0..M.min(activations.rows - first) {
                store.few(first + m, n, &s.sum4(sums[m])[..count]);
            }
            n += count;
        }
        Ok(())
    }

    /// For many rows of activations: 16 rows of weights side by side.
    #[inline(always)]
    fn many<S: Simd, const M: usize>(self, s: S) -> Result<(), CodecError> {
        let Floats { source, weight, rows, activations, store, scratch, cancelled } = self;
        let k = activations.k;
        let (row_bytes, piece) = (source.row_bytes(k), source.piece(k));
        let panels = rows.len().div_ceil(ROWS);
        let (buffer, scratch) = carve::<f32>(scratch, piece * ROWS);
        let (values, _) = carve::<[f32; 16]>(scratch, panels * k);
        for (i, values) in values.chunks_exact_mut(k.max(1)).enumerate() {
            let first = rows.start + i * ROWS;
            let count = (rows.end - first).min(ROWS);
            for (piece_at, values) in values.chunks_mut(piece).enumerate() {
                let len = values.len();
                for (r, buffer) in buffer.chunks_exact_mut(piece).enumerate() {
                    let buffer = &mut buffer[..len];
                    if r < count {
                        let row = &weight[(first + r) * row_bytes..][..row_bytes];
                        source.read(row, piece_at * piece, buffer)?;
                    } else {
                        buffer.fill(0.0);
                    }
                }
                for (j, value) in values.iter_mut().enumerate() {
                    for r in 0..ROWS {
                        value[r] = buffer[r * piece + j];
                    }
                }
            }
        }
        let mut row = 0;
        while row < activations.rows {
            if cancelled() {
                return Ok(());
            }
            let mut x: [&[f32]; M] = [&[]; M];
            for (m, x) in x.iter_mut().enumerate() {
                *x = activations.row((row + m).min(activations.rows - 1));
            }
            for (i, values) in values.chunks_exact(k.max(1)).enumerate() {
                let first = rows.start + i * ROWS;
                let out = tile::<S, M>(s, values, x);
                for m in 0..M.min(activations.rows - row) {
                    store.few(row + m, first, &out[m][..(rows.end - first).min(ROWS)]);
                }
            }
            row += M;
        }
        Ok(())
    }
}

#[inline(always)]
fn tile<S: Simd, const M: usize>(s: S, values: &[[f32; 16]], x: [&[f32]; M]) -> [[f32; 16]; M] {
    let mut acc = [s.splat_f32x16(0.0); M];
    let x = x.map(|x| &x[..values.len()]);
    for (j, w) in values.iter().enumerate() {
        let w = s.load_f32x16(w);
        for m in 0..M {
            acc[m] = s.fma_f32x16(w, s.splat_f32x16(x[m][j]), acc[m]);
        }
    }
    let mut out = [[0.0; 16]; M];
    for m in 0..M {
        s.store_f32x16(acc[m], &mut out[m]);
    }
    out
}

impl Kernel for Floats<'_> {
    type Output = Result<(), CodecError>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<(), CodecError> {
        let rows = self.activations.rows;
        if rows > super::FEW_ROWS {
            if S::FLOAT_TILE == 12 {
                return self.many::<S, 12>(s);
            }
            if S::FLOAT_TILE == 6 {
                return self.many::<S, 6>(s);
            }
        }
        // At the portable level any number of rows comes this way, so that the sums of a row have one order, whatever
        // rows come with it: that level is the reference.
        let mut first = 0;
        while first < rows && !(self.cancelled)() {
            let part = Floats { rows: self.rows.clone(), scratch: &mut *self.scratch, ..self };
            match rows - first {
                1 => part.few::<S, 1>(s, first)?,
                2 => part.few::<S, 2>(s, first)?,
                _ => part.few::<S, { super::FEW_ROWS }>(s, first)?,
            }
            first += super::FEW_ROWS;
        }
        Ok(())
    }
}
