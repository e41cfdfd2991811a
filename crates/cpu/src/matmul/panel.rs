//! Products for many rows of activations: 16 rows of weights are unpacked once, side by side, and multiplied with all
//! rows of activations, a tile of them at a time.
//!
//! Every sum is made as in `vector`: exact integers for each block, then eight accumulators, one for each lane of a
//! step, in the order of the blocks, and the same order among them at the end. So a row's products do not depend on how
//! many rows there are.

use std::marker::PhantomData;
use std::ops::Range;

use heirloom_formats::Unpack;
use heirloom_simd::{BLOCK, BLOCKS, COARSE, Kernel, LANE_OF_BLOCK, STEP, Simd};

use super::activations::{Activations, QuantizedStep};
use super::scratch::{bytes_for, carve};
use super::store::Store;

/// Rows of a panel.
pub(crate) const ROWS: usize = 16;

/// Registers of codes of a step: two for each half.
const REGISTERS: usize = 4;

/// Panels that are kept at a time: as many as leave room for activations in the second-level cache.
const PANELS_BYTES: usize = 192 * 1024;

/// Integers of a block in a panel: the scales of its two groups.
const GROUP_INTS: usize = 2;

/// How one panel is laid out.
#[derive(Clone, Copy)]
struct Layout {
    steps: usize,
    planes: usize,
    minima: bool,
    groups: bool,
}

impl Layout {
    fn of<U: Unpack>(k: usize, narrow: bool) -> Layout {
        let planes = if narrow && U::SIGNED { 2 } else { 1 };
        Layout { steps: k.div_ceil(STEP), planes, minima: U::MINIMA, groups: U::GROUPS }
    }
    /// 64 groups of four codes of 16 rows for each step and plane.
    fn codes(self) -> usize {
        self.steps * self.planes * REGISTERS * 16
    }
    fn floats(self) -> usize {
        self.steps * BLOCKS * (1 + usize::from(self.minima))
    }
    fn ints(self) -> usize {
        if self.groups { self.steps * BLOCKS * GROUP_INTS } else { 0 }
    }
    fn bytes(self) -> usize {
        (self.codes() + self.floats() + self.ints()) * 64
    }
}

/// How many panels a task handles at a time.
pub(crate) fn panels_at_once<U: Unpack>(k: usize, narrow: bool) -> usize {
    (PANELS_BYTES / Layout::of::<U>(k, narrow).bytes().max(1)).clamp(1, 4)
}

/// Scratch bytes of one thread.
pub(crate) fn scratch_bytes<U: Unpack>(k: usize, narrow: bool) -> usize {
    let layout = Layout::of::<U>(k, narrow);
    let panels = panels_at_once::<U>(k, narrow);
    bytes_for::<[u8; 64]>(panels.saturating_mul(layout.codes()))
        .saturating_add(bytes_for::<[f32; 16]>(panels.saturating_mul(layout.floats())))
        .saturating_add(bytes_for::<[i32; 16]>(panels.saturating_mul(layout.ints())))
}

/// Rows `rows` of the weight, at most [`panels_at_once`] panels, times all rows of activations.
pub(crate) struct Panels<'a, U> {
    pub(crate) weight: &'a [u8],
    pub(crate) rows: Range<usize>,
    pub(crate) activations: Activations<'a>,
    pub(crate) store: &'a Store<'a>,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) cancelled: &'a dyn Fn() -> bool,
    pub(crate) format: PhantomData<U>,
}

/// One panel.
#[derive(Clone, Copy)]
struct Panel<'a> {
    codes: &'a [[u8; 64]],
    floats: &'a [[f32; 16]],
    ints: &'a [[i32; 16]],
}

/// Stores the codes of one register of 16 rows, in one or two planes.
#[inline(always)]
fn put_codes<S: Simd, U: Unpack>(s: S, rows: [S::Codes; ROWS], planes: usize, to: &mut [[u8; 64]]) {
    let (to, _) = to.as_chunks_mut::<16>();
    if !U::SIGNED {
        s.transpose(rows, &mut to[0]);
    } else if planes == 1 {
        s.transpose(rows, &mut to[0]);
        let flip = s.splat(0x80);
        for group in &mut to[0] {
            let codes = s.xor(s.load(group), flip);
            s.store(codes, group);
        }
    } else {
        let (low, high) = to.split_at_mut(1);
        s.transpose(rows, &mut high[0]);
        let (flip, mask) = (s.splat(0x80), s.splat(15));
        for (low, high) in low[0].iter_mut().zip(&mut high[0]) {
            let codes = s.xor(s.load(high), flip);
            s.store(s.and(codes, mask), low);
            s.store(s.and(s.shr_quarters::<4, 4, 4, 4>(codes), mask), high);
        }
    }
}

/// Unpacks the first `rows` rows of `weight` into a panel; the others count as 0.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn pack<S: Simd, U: Unpack>(
    s: S,
    weight: &[u8],
    row_bytes: usize,
    rows: usize,
    layout: Layout,
    codes: &mut [[u8; 64]],
    floats: &mut [[f32; 16]],
    ints: &mut [[i32; 16]],
) {
    let step_bytes = const { U::RECORD_BYTES * (BLOCKS / U::RECORD_BLOCKS) };
    let per_block = 1 + usize::from(U::MINIMA);
    for step in 0..layout.steps {
        let mut registers = [[[s.splat(0); ROWS]; 2]; 2];
        let floats = &mut floats[step * BLOCKS * per_block..][..BLOCKS * per_block];
        for r in 0..ROWS {
            let mut padded = [0; 8 * 34];
            let mut records = &padded[..step_bytes];
            if r < rows {
                let row = &weight[r * row_bytes..][..row_bytes];
                let row = &row[step * step_bytes..];
                records = match row.get(..step_bytes) {
                    Some(records) => records,
                    None => {
                        for (to, from) in padded.iter_mut().zip(row) {
                            *to = *from;
                        }
                        &padded[..step_bytes]
                    }
                };
            }
            for half in 0..2 {
                let [first, last] = U::codes(s, records, half);
                registers[half][0][r] = first;
                registers[half][1][r] = last;
            }
            let mut lanes = [0.0; BLOCKS];
            s.store_f32x8(U::scales(s, records), &mut lanes);
            for block in 0..BLOCKS {
                floats[block * per_block][r] = lanes[LANE_OF_BLOCK[block]];
            }
            if U::MINIMA {
                s.store_f32x8(U::minima(s, records), &mut lanes);
                for block in 0..BLOCKS {
                    floats[block * per_block + 1][r] = lanes[LANE_OF_BLOCK[block]];
                }
            }
            if U::GROUPS {
                let ints = &mut ints[step * BLOCKS * GROUP_INTS..][..BLOCKS * GROUP_INTS];
                let groups = U::groups(records);
                for block in 0..BLOCKS {
                    let [a, b] = [groups[2 * block] as i8, groups[2 * block + 1] as i8];
                    let of = &mut ints[block * GROUP_INTS..][..GROUP_INTS];
                    of[0][r] = s.row_scale(i16::from(a));
                    of[1][r] = s.row_scale(i16::from(b));
                }
            }
        }
        let per_register = layout.planes * 16;
        for half in 0..2 {
            for register in 0..2 {
                let at = (step * REGISTERS + half * 2 + register) * per_register;
                put_codes::<S, U>(
                    s,
                    registers[half][register],
                    layout.planes,
                    &mut codes[at..at + per_register],
                );
            }
        }
    }
}

/// The sums of one block for 16 rows and `M / 2` rows of activations, offsets taken off; `M` counts their coarse and fine
/// parts.
///
/// 16-bit parts of sums hold half of 32 products, or of 16 in groups: activations within -127..=127 times codes, less
/// offset, within -16..=15 give at most 16 * 16 * 127 = 32512, and so do 8 * 32 * 127 in groups. Codes up to 31 without an
/// offset are therefore taken less 16, and what that misses is added in the end; signed bytes are two planes of 4 bits.
#[inline(always)]
fn block<S: Simd, U: Unpack, const M: usize>(
    s: S,
    codes: &[[[[u8; 64]; 4]; 4]],
    scales: &[[i32; 16]],
    half: usize,
    quarter: usize,
    lane: usize,
    x: [&QuantizedStep; M],
) -> [S::I32x16; M] {
    let planes = codes.len() / 2;
    let mut registers = [[&[0; 16]; M]; 2];
    for m in 0..M {
        for register in 0..2 {
            let codes = &x[m / 2].codes[half][m % 2][register];
            registers[register][m] = &codes.as_chunks::<16>().0[quarter];
        }
    }
    let mut out = [s.zero_i32x16(); M];
    if U::GROUPS {
        for group in 0..2 {
            let mut sums = [s.start(&[0, 0], 0); M];
            for m in 0..M {
                sums[m] = s.start(&x[m / 2].group_starts[lane][m % 2][group], U::OFFSET / 8);
            }
            s.add_products(&mut sums, &codes[group][quarter], registers[group]);
            for m in 0..M / 2 {
                let coarse = s.widen_scaled(sums[2 * m], &scales[group]);
                let fine = s.widen_scaled(sums[2 * m + 1], &scales[group]);
                let both = s.add_i32x16(s.mul_i32x16(coarse, s.splat_i32x16(COARSE)), fine);
                out[m] = if group == 0 { both } else { s.add_i32x16(out[m], both) };
            }
        }
        return out;
    }
    // In units of 8, what is taken off the codes of the (last) plane.
    let eights = if U::SIGNED {
        if planes == 2 { 1 } else { 16 }
    } else if U::OFFSET == 0 && U::MAX > 15 && S::NARROW {
        2
    } else {
        U::OFFSET / 8
    };
    for plane in 0..planes {
        let eights = if plane + 1 == planes { eights } else { 0 };
        let mut sums = [s.start(&[0, 0], 0); M];
        for m in 0..M {
            sums[m] = s.start(&x[m / 2].starts[lane][m % 2], eights);
        }
        s.add_products(&mut sums, &codes[plane][quarter], registers[0]);
        s.add_products(&mut sums, &codes[planes + plane][quarter], registers[1]);
        for m in 0..M / 2 {
            let coarse = s.widen_scaled(sums[2 * m], &[s.row_scale(if plane == 0 { 64 } else { 1024 }); 16]);
            let both = if plane == 0 {
                s.add_i32x16(coarse, s.widen(sums[2 * m + 1]))
            } else {
                let fine = s.widen_scaled(sums[2 * m + 1], &[s.row_scale(16); 16]);
                s.add_i32x16(out[m], s.add_i32x16(coarse, fine))
            };
            out[m] = both;
        }
    }
    if !U::SIGNED && 8 * eights != U::OFFSET {
        for m in 0..M / 2 {
            out[m] = s.add_i32x16(out[m], s.splat_i32x16(x[m].sums[lane] * (8 * eights)));
        }
    }
    out
}

/// One panel times `M / 2` rows of activations: [M / 2][16].
#[inline(always)]
fn tile<S: Simd, U: Unpack, const M: usize>(
    s: S,
    panel: Panel<'_>,
    layout: Layout,
    blocks: usize,
    x: [&[QuantizedStep]; M],
    out: &mut [[f32; 16]; M],
) {
    let per_block = 1 + usize::from(U::MINIMA);
    let per_register = layout.planes * 16;
    let mut acc = [[[0.0f32; 16]; BLOCKS]; M];
    for step in 0..layout.steps {
        let x = x.map(|x| &x[step]);
        let codes = &panel.codes[step * REGISTERS * per_register..][..REGISTERS * per_register];
        let (codes, _) = codes.as_chunks::<4>();
        let (codes, _) = codes.as_chunks::<4>();
        let floats = &panel.floats[step * BLOCKS * per_block..][..BLOCKS * per_block];
        let left = blocks - step * BLOCKS;
        for half in 0..2 {
            let codes = &codes[half * 2 * layout.planes..][..2 * layout.planes];
            for quarter in 0..4 {
                let index = half * 4 + quarter;
                if index >= left {
                    break;
                }
                let lane = LANE_OF_BLOCK[index] & 7;
                let ints: &[[i32; 16]] = if U::GROUPS {
                    &panel.ints[(step * BLOCKS + index) * GROUP_INTS..][..GROUP_INTS]
                } else {
                    &[]
                };
                let sums = block::<S, U, M>(s, codes, ints, half, quarter, lane, x);
                let scales = s.load_f32x16(&floats[index * per_block]);
                for m in 0..M / 2 {
                    let acc = &mut acc[m][lane];
                    let scales = s.mul_f32x16(scales, s.splat_f32x16(x[m].scales[lane]));
                    let mut sum = s.fma_f32x16(s.to_f32x16(sums[m]), scales, s.load_f32x16(acc));
                    if U::MINIMA {
                        let minima = s.load_f32x16(&floats[index * per_block + 1]);
                        sum = s.fma_f32x16(minima, s.splat_f32x16(x[m].scaled_sums[lane]), sum);
                    }
                    s.store_f32x16(sum, acc);
                }
            }
        }
    }
    for m in 0..M / 2 {
        let sum2 = |a: usize, b: usize| s.add_f32x16(s.load_f32x16(&acc[m][a]), s.load_f32x16(&acc[m][b]));
        let low = s.add_f32x16(sum2(0, 1), sum2(2, 3));
        let high = s.add_f32x16(sum2(4, 5), sum2(6, 7));
        s.store_f32x16(s.add_f32x16(low, high), &mut out[m]);
    }
}

impl<U: Unpack> Panels<'_, U> {
    #[inline(always)]
    fn run_tiles<S: Simd, const M: usize>(self, s: S) {
        let Panels { weight, rows, activations, store, scratch, cancelled, .. } = self;
        let layout = Layout::of::<U>(activations.k, S::NARROW);
        let row_bytes = activations.k / (BLOCK * U::RECORD_BLOCKS) * U::RECORD_BYTES;
        let blocks = activations.k / BLOCK;
        let panels = rows.len().div_ceil(ROWS);
        let (codes, scratch) = carve::<[u8; 64]>(scratch, panels * layout.codes());
        let (floats, scratch) = carve::<[f32; 16]>(scratch, panels * layout.floats());
        let (ints, _) = carve::<[i32; 16]>(scratch, panels * layout.ints());
        for i in 0..panels {
            let first = rows.start + i * ROWS;
            pack::<S, U>(
                s,
                &weight[first * row_bytes..],
                row_bytes,
                (rows.end - first).min(ROWS),
                layout,
                &mut codes[i * layout.codes()..][..layout.codes()],
                &mut floats[i * layout.floats()..][..layout.floats()],
                &mut ints[i * layout.ints()..][..layout.ints()],
            );
        }
        let mut row = 0;
        while row < activations.rows {
            if cancelled() {
                return;
            }
            let mut x: [&[QuantizedStep]; M] = [&[]; M];
            for (m, x) in x.iter_mut().enumerate() {
                // Beyond the last row its products are computed again, and not stored.
                *x = activations.row_steps((row + m).min(activations.rows - 1));
            }
            for i in 0..panels {
                let first = rows.start + i * ROWS;
                let panel = Panel {
                    codes: &codes[i * layout.codes()..][..layout.codes()],
                    floats: &floats[i * layout.floats()..][..layout.floats()],
                    ints: &ints[i * layout.ints()..][..layout.ints()],
                };
                let mut out = [[0.0; 16]; M];
                tile::<S, U, M>(s, panel, layout, blocks, x, &mut out);
                for m in 0..(M / 2).min(activations.rows - row) {
                    store.few(row + m, first, &out[m][..(rows.end - first).min(ROWS)]);
                }
            }
            row += M / 2;
        }
    }
}

impl<U: Unpack> Kernel for Panels<'_, U> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if S::TILE == 8 { self.run_tiles::<S, 8>(s) } else { self.run_tiles::<S, 4>(s) }
    }
}
