//! `MatMulInteger`: products of 8-bit codes, computed as FLOAT products of at most 256 codes each, which are exact.
#![allow(unsafe_code)]

use heirloom_mem::DType;
use heirloom_ops::MatMulShapes;
use heirloom_runtime::{Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use crate::fallback::Portable;
use crate::gemm::{Columns, DEPTH, Product, Right, Start, panel_floats};
use crate::lanes;
use crate::panels::Panels;

/// ONNX `MatMulInteger` with one matrix b of one zero point.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMulInteger",
    versions: (10, i64::MAX),
    rank: 10,
    accepts: |cx| {
        cx.plain_inputs() && matches!(cx.constant(1), Some(Value::Tensor(t)) if t.shape().len() == 2)
    },
    build: |cx| {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        Ok(Box::new(MatMulInteger { isa, portable, panels: Panels::of(1) }))
    },
};

struct MatMulInteger {
    isa: Isa,
    portable: Portable,
    /// Blocks of 256 rows of b, less its zero point.
    panels: Panels,
}

/// One 8-bit code as a number.
pub(crate) fn code(byte: u8, signed: bool) -> f32 {
    if signed { f32::from(byte.cast_signed()) } else { f32::from(byte) }
}

/// Codes [k, n] less a zero point.
pub(crate) struct Codes<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) signed: bool,
    pub(crate) zero: f32,
    pub(crate) n: usize,
    /// The first row.
    pub(crate) first: usize,
    /// Rows from the first on; those behind the last are zeros.
    pub(crate) rows: usize,
}

impl Columns for Codes<'_> {
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
                    to.iter_mut().zip(from).for_each(|(t, &b)| *t = code(b, self.signed) - self.zero);
                }
            }
        }
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::Uint8 | DType::Int8)
}

/// The only zero point of an input; `None` where there are several.
fn zero(cx: &RunCx<'_>, index: usize) -> Result<Option<f32>, KernelError> {
    match cx.opt_tensor(index)? {
        None => Ok(Some(0.0)),
        Some(t) if t.len() == 1 && is_byte(t.dtype()) => {
            Ok(t.dense_bytes().map(|b| code(b[0], t.dtype() == DType::Int8)))
        }
        Some(_) => Ok(None),
    }
}

impl Kernel for MatMulInteger {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        // The zero point is a part of the panels, so it must be constant too.
        let constant_zero = matches!(cx.constant(3), Some(Value::Tensor(t)) if t.len() == 1);
        if let Some(Value::Tensor(b)) = cx.constant(1)
            && let &[k, n] = b.shape()
            && (constant_zero || !cx.has_input(3))
        {
            let zero = match cx.constant(3).and_then(Value::as_tensor).and_then(|t| t.dense_bytes()) {
                Some(&[byte, ..]) => u64::from(byte) + 1,
                _ => 0,
            };
            self.panels.claim_with(cx, "cpu.f32.panels.codes", &[zero], k.div_ceil(DEPTH), DEPTH, n);
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (a, b) = (cx.dense(0)?, cx.dense(1)?);
        let (Some(a_zero), Some(b_zero)) = (zero(cx, 2)?, zero(cx, 3)?) else { return self.portable.run(cx) };
        if !is_byte(a.dtype()) || !is_byte(b.dtype()) || a.is_empty() || b.is_empty() {
            return self.portable.run(cx);
        }
        let shapes = MatMulShapes::new(a.shape(), b.shape())?;
        let (n, k) = (shapes.n, shapes.k);
        let signed = a.dtype() == DType::Int8;
        let values: Vec<f32> =
            a.dense_bytes().unwrap_or(&[]).iter().map(|&byte| code(byte, signed) - a_zero).collect();
        let (bytes, b_signed) = (b.dense_bytes().unwrap_or(&[]), b.dtype() == DType::Int8);
        let m = values.len() / k;
        let held = self.panels.get(cx, k.div_ceil(DEPTH), (DEPTH, n), |block| {
            let first = block * DEPTH;
            Box::new(Codes { bytes, signed: b_signed, zero: b_zero, n, first, rows: (k - first).min(DEPTH) })
        })?;
        let mut out = cx.alloc(DType::Int32, &shapes.result)?;
        let to = out.elements_mut::<i32>();
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
        cx.set(0, out.freeze());
        Ok(())
    }
}
