//! Exact products of 8-bit codes with AVX-512's sums of four products: unsigned codes of a, signed codes of b, whose columns
//! lie in panels of 16, four rows of each column side by side.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use heirloom_mem::Bytes;
use heirloom_runtime::{CancelToken, Cancelled, KernelError, KernelLayout, PrepareCx, Prepared, RunCx, Team};
use heirloom_simd::Avx512;

use crate::disjoint::DisjointMut;
use crate::gemm::{PANEL, share};

/// What unsigned codes have more than signed ones.
const OFFSET: i32 = 128;

/// Bytes of a matrix [k, n] in panels, the columns' sums behind them.
fn packed_bytes(k: usize, n: usize) -> usize {
    n.next_multiple_of(PANEL) * (k.next_multiple_of(4) + size_of::<i32>())
}

/// Puts codes [k, n] into panels, as signed ones, and the columns' sums behind them.
fn pack(codes: &[u8], signed: bool, (k, n): (usize, usize), to: &mut [u8]) {
    let flip = if signed { 0 } else { 0x80 };
    let depth = k.next_multiple_of(4);
    let (panels, sums) = to.split_at_mut(n.next_multiple_of(PANEL) * depth);
    panels.fill(0);
    let mut totals = vec![0i32; n.next_multiple_of(PANEL)];
    for (row, codes) in codes.chunks_exact(n.max(1)).enumerate().take(k) {
        for (panel, codes) in codes.chunks(PANEL).enumerate() {
            let at = panel * PANEL * depth + row / 4 * 4 * PANEL + row % 4;
            let to = panels[at..].iter_mut().step_by(4);
            for ((to, total), &code) in to.zip(&mut totals[panel * PANEL..]).zip(codes) {
                *to = code ^ flip;
                *total += i32::from((code ^ flip).cast_signed());
            }
        }
    }
    for (to, total) in sums.chunks_exact_mut(size_of::<i32>()).zip(totals) {
        to.iter_mut().zip(total.to_le_bytes()).for_each(|(t, b)| *t = b);
    }
}

/// Constant matrices of codes in panels, one behind the other: prepared where the session keeps such objects, else made
/// for the call.
pub(crate) struct CodePanels {
    input: usize,
    prepared: Option<Prepared>,
}

/// Panels for one call.
pub(crate) enum Held {
    Prepared(Bytes),
    Made(Vec<u8>),
}

impl CodePanels {
    pub(crate) fn of(input: usize) -> CodePanels {
        CodePanels { input, prepared: None }
    }

    pub(crate) fn claim(&mut self, cx: &PrepareCx<'_>, count: usize, k: usize, n: usize) {
        let layout = KernelLayout {
            name: "cpu.8bit.panels",
            version: 1,
            parameters: [count, k, n].into_iter().map(|v| v as u64).collect(),
            bytes: count * packed_bytes(k, n),
        };
        self.prepared = cx.claim(self.input, layout);
    }

    /// The panels of `count` matrices [k, n] of `codes`.
    pub(crate) fn get(
        &self,
        cx: &RunCx<'_>,
        codes: &[u8],
        signed: bool,
        count: usize,
        (k, n): (usize, usize),
    ) -> Result<Held, KernelError> {
        let each = packed_bytes(k, n);
        let all = |to: &mut [u8]| {
            for (to, codes) in to.chunks_exact_mut(each).zip(codes.chunks_exact((k * n).max(1))) {
                pack(codes, signed, (k, n), to);
            }
        };
        if let Some(prepared) = &self.prepared
            && prepared.layout().bytes == count * each
            && let Some(bytes) = cx.prepared(self.input, prepared, |to| {
                all(to);
                Ok(())
            })?
        {
            return Ok(Held::Prepared(bytes));
        }
        let mut made = vec![0; count * each];
        all(&mut made);
        Ok(Held::Made(made))
    }
}

impl Held {
    /// Matrix `index`, [k, n], of codes that were signed or not.
    pub(crate) fn matrix(&self, index: usize, signed: bool, k: usize, n: usize) -> Right<'_> {
        let all: &[u8] = match self {
            Held::Prepared(bytes) => bytes,
            Held::Made(bytes) => bytes,
        };
        let each = packed_bytes(k, n);
        let own = &all[index * each..(index + 1) * each];
        let (panels, sums) = own.split_at(n.next_multiple_of(PANEL) * k.next_multiple_of(4));
        Right { panels, sums, k, n, offset: if signed { 0 } else { OFFSET } }
    }
}

/// Panels of b.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    panels: &'a [u8],
    sums: &'a [u8],
    k: usize,
    n: usize,
    /// What the codes had more.
    offset: i32,
}

/// Rows of a as unsigned codes, a multiple of four of each, and their sums.
pub(crate) struct Left {
    codes: Vec<u8>,
    sums: Vec<i32>,
    depth: usize,
    offset: i32,
}

impl Left {
    /// Rows of `k` codes each.
    pub(crate) fn new(codes: &[u8], signed: bool, k: usize) -> Left {
        let flip = if signed { 0x80 } else { 0 };
        let depth = k.next_multiple_of(4);
        let rows = codes.len() / k.max(1);
        let mut own = vec![0u8; rows * depth];
        let mut sums = vec![0; rows];
        for ((to, sum), from) in
            own.chunks_exact_mut(depth.max(1)).zip(&mut sums).zip(codes.chunks_exact(k.max(1)))
        {
            to.iter_mut().zip(from).for_each(|(t, &c)| *t = c ^ flip);
            *sum = to.iter().map(|&c| u32::from(c)).sum::<u32>().cast_signed();
        }
        Left { codes: own, sums, depth, offset: if signed { OFFSET } else { 0 } }
    }
}

/// What is added to a sum of codes so that it is one of codes less their zero points.
#[derive(Clone, Copy)]
struct Zeros<'a> {
    left: i32,
    /// One for each column, and for those that fill the last panel.
    right: &'a [i32],
}

/// Columns of a task.
const COLUMNS: usize = 4 * PANEL;

/// `out` [m, n] = (a - left_zero) (b - right_zeros), as 32-bit integers that wrap; one zero point of b, or one for each
/// column.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn multiply(
    token: Avx512,
    (left, left_zero): (&Left, i32),
    (right, right_zeros): (Right<'_>, &[i32]),
    out: &mut [i32],
    team: &dyn Team,
    cancel: &CancelToken,
) -> Result<(), Cancelled> {
    let (m, n) = (left.sums.len(), right.n);
    // Stored codes have an offset less or more than the given ones, and so do their zero points.
    let mut own = vec![0; n.next_multiple_of(PANEL)];
    for (column, own) in own[..n].iter_mut().enumerate() {
        *own = right_zeros[if right_zeros.len() == 1 { 0 } else { column }] - right.offset;
    }
    let zeros = Zeros { left: left_zero + left.offset, right: &own };
    let to = DisjointMut::new(out);
    let units = n.div_ceil(COLUMNS);
    let (tasks, each) = share(units, m.saturating_mul(n).saturating_mul(right.k) / 2, team.threads());
    team.run(tasks, &|task| {
        for unit in task * each..((task + 1) * each).min(units) {
            if cancel.is_cancelled() {
                return;
            }
            let columns = (unit * COLUMNS, ((unit + 1) * COLUMNS).min(n));
            // SAFETY: the token proves the instructions.
            unsafe { strip(token, left, right, zeros, columns, &to) };
        }
    });
    cancel.check()
}

/// All rows of some columns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn strip(
    _token: Avx512,
    left: &Left,
    right: Right<'_>,
    zeros: Zeros<'_>,
    columns: (usize, usize),
    out: &DisjointMut<'_, i32>,
) {
    let rows = left.sums.len();
    let mut column = columns.0;
    while column < columns.1 {
        let panels = (columns.1 - column).div_ceil(PANEL);
        let width = if panels >= 4 { 4 } else { 1 };
        let mut row = 0;
        while row < rows {
            let at = At { row, column, end: columns.1 };
            macro_rules! rows {
                ($($M:literal),*) => {
                    match (width, rows - row) {
                        $((4, $M) => { tile::<$M, 4>(left, right, zeros, at, out); $M })*
                        (4, _) => { tile::<6, 4>(left, right, zeros, at, out); 6 }
                        $((_, $M) => { tile::<$M, 1>(left, right, zeros, at, out); $M })*
                        _ => { tile::<6, 1>(left, right, zeros, at, out); 6 }
                    }
                };
            }
            row += rows!(1, 2, 3, 4, 5);
        }
        column += width * PANEL;
    }
}

#[derive(Clone, Copy)]
struct At {
    row: usize,
    column: usize,
    end: usize,
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
#[inline(never)]
// Registers are indexed by constants, and the loops unrolled.
#[allow(clippy::needless_range_loop)]
fn tile<const M: usize, const P: usize>(
    left: &Left,
    right: Right<'_>,
    zeros: Zeros<'_>,
    at: At,
    out: &DisjointMut<'_, i32>,
) {
    let depth = left.depth;
    assert!(depth == right.k.next_multiple_of(4), "the same depth on both sides");
    let panel = PANEL * depth;
    let panels = &right.panels[at.column * depth..][..P * panel];
    let rows: [&[u8]; M] = std::array::from_fn(|m| &left.codes[(at.row + m) * depth..][..depth]);
    let mut sums = [[_mm512_setzero_si512(); P]; M];
    for group in 0..depth / 4 {
        // SAFETY: each of the P panels has 64 bytes for each group of four rows.
        let b: [__m512i; P] = std::array::from_fn(|p| unsafe {
            _mm512_loadu_si512(panels.as_ptr().add(p * panel + group * 4 * PANEL).cast())
        });
        for m in 0..M {
            // SAFETY: each row has four bytes for each group.
            let four = unsafe { rows[m].as_ptr().add(group * 4).cast::<i32>().read_unaligned() };
            let a = _mm512_set1_epi32(four);
            for p in 0..P {
                sums[m][p] = _mm512_dpbusd_epi32(sums[m][p], a, b[p]);
            }
        }
    }
    for m in 0..M {
        let row = at.row + m;
        let rest = left.sums[row].wrapping_sub(zeros.left.wrapping_mul(right.k as i32));
        for p in 0..P {
            let column = at.column + p * PANEL;
            let own = &right.sums[column * size_of::<i32>()..][..PANEL * size_of::<i32>()];
            let zero = &zeros.right[column..][..PANEL];
            // SAFETY: both slices have 64 bytes.
            let (own, zero) = unsafe {
                (_mm512_loadu_si512(own.as_ptr().cast()), _mm512_loadu_si512(zero.as_ptr().cast()))
            };
            let own = _mm512_mullo_epi32(own, _mm512_set1_epi32(zeros.left));
            let zero = _mm512_mullo_epi32(zero, _mm512_set1_epi32(rest));
            let sum = _mm512_sub_epi32(sums[m][p], _mm512_add_epi32(own, zero));
            let count = at.end.saturating_sub(column).min(PANEL);
            // SAFETY: tasks have no columns in common.
            let to = unsafe {
                out.part(row * right.n + column.min(at.end)..row * right.n + column.min(at.end) + count)
            };
            let mask = ((1u32 << count) - 1) as u16;
            // SAFETY: the mask has one bit for each element of `to`.
            unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr(), mask, sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heirloom_simd::{Isa, Level};

    /// Bytes in which all values occur.
    fn bytes(len: usize, seed: u32) -> Vec<u8> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
    }

    #[test]
    fn products_of_codes_are_the_integers_of_the_definition() {
        let Ok(Isa::Avx512(token)) = Isa::new(Level::Avx512) else { return };
        let value =
            |code: u8, signed: bool| if signed { i32::from(code.cast_signed()) } else { i32::from(code) };
        for (m, k, n) in
            [(1, 1, 1), (1, 7, 65), (2, 4, 16), (3, 130, 64), (5, 33, 100), (6, 9, 17), (13, 258, 131)]
        {
            for (a_signed, b_signed, a_zero, b_zero) in [
                (false, true, 0, 0),
                (false, false, 255, 128),
                (true, true, -128, 127),
                (true, false, 5, 250),
            ] {
                let (mut a, mut b) = (bytes(m * k, 3), bytes(k * n, 99));
                // The extremes, where 16-bit sums would saturate.
                a.iter_mut().take(k).for_each(|a| *a = if a_signed { 0x7f } else { 0xff });
                b.iter_mut().step_by(n).for_each(|b| *b = if b_signed { 0x80 } else { 0xff });
                // One zero point, or each column's own.
                let b_zeros: Vec<i32> = match n % 2 {
                    0 => vec![b_zero],
                    _ => (0..n as i32).map(|column| b_zero - column % 3).collect(),
                };
                let left = Left::new(&a, a_signed, k);
                let mut packed = vec![0; packed_bytes(k, n)];
                pack(&b, b_signed, (k, n), &mut packed);
                let held = Held::Made(packed);
                let mut out = vec![0; m * n];
                let team = crate::ClaimTeam::new(2);
                let right = held.matrix(0, b_signed, k, n);
                multiply(token, (&left, a_zero), (right, &b_zeros), &mut out, &team, &CancelToken::new())
                    .unwrap();
                for (at, &actual) in out.iter().enumerate() {
                    let (row, column) = (at / n, at % n);
                    let expected: i32 = (0..k)
                        .map(|j| {
                            (value(a[row * k + j], a_signed) - a_zero)
                                * (value(b[j * n + column], b_signed) - b_zeros[column % b_zeros.len()])
                        })
                        .sum();
                    assert_eq!(actual, expected, "{m} x {k} x {n}, [{row}, {column}]");
                }
            }
        }
    }
}
