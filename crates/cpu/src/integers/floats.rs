//! Products of 8-bit codes as FLOAT products, which are exact: blocks of at most 256 rows.

use heirloom_runtime::{KernelError, PrepareCx, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use super::{Codes, integer};
use crate::gemm::{Columns, DEPTH, Product, Right, Start, panel_floats};
use crate::panels::Panels;

/// How products of codes with input 1 are computed.
pub(super) struct FloatCodes {
    isa: Isa,
    /// Blocks of 256 rows of b, less its zero point.
    panels: Panels,
}

/// Codes [k, n] less a zero point.
pub(crate) struct Shifted<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) signed: bool,
    pub(crate) zero: i32,
    pub(crate) n: usize,
    /// The first row.
    pub(crate) first: usize,
    /// Rows from the first on; those behind the last are zeros.
    pub(crate) rows: usize,
}

impl Columns for Shifted<'_> {
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]) {
        let rows = depth.1 - depth.0;
        for (panel, to) in to.chunks_exact_mut((rows * 16).max(1)).enumerate() {
            let first = columns.0 + panel * 16;
            if first >= columns.1 {
                break;
            }
            let count = (columns.1 - first).min(16);
            for (row, to) in to.chunks_exact_mut(16).enumerate() {
                to.fill(0.0);
                if depth.0 + row < self.rows {
                    let from = &self.bytes[(self.first + depth.0 + row) * self.n + first..][..count];
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(t, &b)| *t = (integer(b, self.signed) - self.zero) as f32);
                }
            }
        }
    }
}

impl FloatCodes {
    pub(super) fn new(isa: Isa) -> FloatCodes {
        FloatCodes { isa, panels: Panels::of(1) }
    }

    pub(super) fn prepare(&mut self, cx: &PrepareCx<'_>, k: usize, n: usize) {
        // The zero point is a part of the panels, so it must be constant too.
        let constant_zero = matches!(cx.constant(3), Some(Value::Tensor(t)) if t.len() == 1);
        if constant_zero || !cx.has_input(3) {
            let zero = match cx.constant(3).and_then(Value::as_tensor).and_then(|t| t.dense_bytes()) {
                Some(&[byte, ..]) => u64::from(byte) + 1,
                _ => 0,
            };
            self.panels.claim_with(cx, "cpu.f32.panels.codes", &[zero], k.div_ceil(DEPTH), DEPTH, n);
        }
    }

    /// `to` = (a - its zero point) (b - its zero point).
    pub(super) fn multiply(
        &self,
        cx: &RunCx<'_>,
        a: Codes<'_>,
        b: Codes<'_>,
        (k, n): (usize, usize),
        to: &mut [i32],
    ) -> Result<(), KernelError> {
        let values: Vec<f32> =
            a.bytes.iter().map(|&byte| (integer(byte, a.signed) - a.zeros[0]) as f32).collect();
        let Codes { bytes, signed, zeros } = b;
        let m = values.len() / k;
        let held = self.panels.get(cx, k.div_ceil(DEPTH), (DEPTH, n), |block| {
            let first = block * DEPTH;
            Box::new(Shifted { bytes, signed, zero: zeros[0], n, first, rows: (k - first).min(DEPTH) })
        })?;
        let mut sums = vec![0.0; m * n];
        let each = panel_floats(DEPTH, n);
        for (block, panels) in held.floats().chunks_exact(each).enumerate() {
            let first = block * DEPTH;
            // The panels of the last block are as deep as all; the product reads the rows that a has.
            let part = (k - first).min(DEPTH);
            let mut own;
            let (a, lda) = match part == DEPTH {
                true => (&values[first..], k),
                false => {
                    own = vec![0.0; m * DEPTH];
                    for (to, from) in own.chunks_exact_mut(DEPTH).zip(values.chunks_exact(k)) {
                        to[..part].iter_mut().zip(&from[first..]).for_each(|(t, &v)| *t = v);
                    }
                    (&own[..], DEPTH)
                }
            };
            let b = Right::Packed(panels);
            let product = Product { isa: self.isa, m, n, k: DEPTH, a, lda, b, start: Start::Zero, ldo: n };
            product.run(&mut sums, cx.team(), cx.cancel())?;
            if block == 0 {
                to.iter_mut().zip(&sums).for_each(|(t, &s)| *t = s as i32);
            } else {
                to.iter_mut().zip(&sums).for_each(|(t, &s)| *t += s as i32);
            }
        }
        Ok(())
    }
}
