//! `MatMul` and `Gemm` of FLOAT matrices that are not read by [`crate::linear`].
#![allow(unsafe_code)]

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_ops::MatMulShapes;
use heirloom_runtime::{Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::gemm::{Matrix, Product, Right, Start, Transposed};
use crate::lanes;
use crate::linear;
use crate::panels::Panels;

/// ONNX `MatMul` of FLOAT tensors.
pub(crate) const MAT_MUL: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMul",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && may_be_float(cx, 0) && may_be_float(cx, 1),
    build: |cx| {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        Ok(Box::new(MatMul { isa, portable, panels: Panels::of(1) }))
    },
};

/// ONNX `Gemm` of FLOAT matrices, A as it is.
pub(crate) const GEMM: KernelSpec = KernelSpec {
    domain: "",
    op: "Gemm",
    versions: (7, i64::MAX),
    rank: 10,
    accepts: |cx| {
        let attributes = &cx.node.attributes;
        let one = |name| attributes.float_or(name, 1.0).is_ok_and(|v| v == 1.0);
        cx.plain_inputs()
            && may_be_float(cx, 0)
            && may_be_float(cx, 1)
            && attributes.int_or("transA", 0).is_ok_and(|t| t == 0)
            && one("alpha")
            && one("beta")
    },
    build: |cx| {
        let trans_b = cx.node.attributes.int_or("transB", 0)? != 0;
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        let rows = (linear::GEMM.accepts)(cx).then(|| (linear::GEMM.build)(cx)).transpose()?;
        Ok(Box::new(Gemm { isa, portable, trans_b, panels: Panels::of(1), rows }))
    },
};

struct MatMul {
    isa: Isa,
    portable: Portable,
    panels: Panels,
}

/// Rows of a from which on the columns of b are worth putting into panels.
const PACK_ROWS: usize = 12;

fn constant_matrix(cx: &PrepareCx<'_>, index: usize) -> Option<(usize, usize)> {
    match cx.constant(index) {
        Some(Value::Tensor(tensor)) if tensor.dtype() == DType::Float => match *tensor.shape() {
            [rows, columns] if rows * columns > 0 => Some((rows, columns)),
            _ => None,
        },
        _ => None,
    }
}

/// The elements of matrix `index` of `count` of a tensor that is dense, or a cache of whole matrices.
fn matrix(tensor: &Tensor, count: usize, index: usize) -> Option<&[f32]> {
    match tensor.as_slice::<f32>() {
        Ok(all) => {
            let len = all.len() / count.max(1);
            all.get(index * len..(index + 1) * len)
        }
        Err(_) => tensor.block::<f32>(count, index).ok(),
    }
}

impl Kernel for MatMul {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        if let Some((k, n)) = constant_matrix(cx, 1) {
            self.panels.claim(cx, "cpu.f32.panels", 1, k, n);
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..2) {
            return self.portable.run(cx);
        }
        let (a, b) = (cx.tensor(0)?.clone(), cx.tensor(1)?.clone());
        let shapes = MatMulShapes::new(a.shape(), b.shape())?;
        let &MatMulShapes { m, n, k, .. } = &shapes;
        if m * n * k == 0 || a.dense_bytes().is_none() && b.shape().len() <= 2 {
            return self.portable.run(cx);
        }
        let isa = self.isa;
        // One b for all of a: rows of all matrices together.
        if b.shape().len() <= 2 {
            let (Ok(a_all), Ok(b_all)) = (a.as_slice::<f32>(), b.as_slice::<f32>()) else {
                return self.portable.run(cx);
            };
            let rows = a_all.len() / k;
            let mut out = cx.alloc(DType::Float, &shapes.result)?;
            let held = match self.panels.claimed() {
                true => {
                    Some(self.panels.get(cx, 1, (k, n), |_| Box::new(Matrix { data: b_all, stride: n }))?)
                }
                false => None,
            };
            let columns = Matrix { data: b_all, stride: n };
            let right = match &held {
                Some(held) => Right::Packed(held.floats()),
                None if rows < PACK_ROWS => Right::Rows(b_all, n),
                None => Right::Columns(&columns),
            };
            let product =
                Product { isa, m: rows, n, k, a: a_all, lda: k, b: right, start: Start::Zero, ldo: n };
            product.run(out.elements_mut(), cx.team(), cx.cancel())?;
            cx.set(0, out.freeze());
            return Ok(());
        }
        let mut triples = Vec::new();
        shapes.each(|at, i, j| triples.push((at, i, j)));
        let (a_count, b_count) = (count(a.shape()), count(b.shape()));
        // A cache in several segments is read by the portable kernel.
        if matrix(&a, a_count, 0).is_none() || matrix(&b, b_count, 0).is_none() {
            return self.portable.run(cx);
        }
        let mut out = cx.alloc(DType::Float, &shapes.result)?;
        let to = DisjointMut::new(out.elements_mut::<f32>());
        let cancel = cx.cancel();
        let one = |index: usize, to: &mut [f32], team: Option<&dyn heirloom_runtime::Team>| {
            let (_, i, j) = triples[index];
            let (Some(a), Some(b)) = (matrix(&a, a_count, i), matrix(&b, b_count, j)) else { return };
            let columns = Matrix { data: b, stride: n };
            let right = if m < PACK_ROWS { Right::Rows(b, n) } else { Right::Columns(&columns) };
            let product = Product { isa, m, n, k, a, lda: k, b: right, start: Start::Zero, ldo: n };
            match team {
                // A cancelled call is noticed below.
                Some(team) => drop(product.run(to, team, cancel)),
                None => product.run_alone(to, cancel),
            }
        };
        let place = |index: usize| triples[index].0 * m * n..(triples[index].0 + 1) * m * n;
        if triples.len() < 2 * cx.team().threads() {
            for index in 0..triples.len() {
                // SAFETY: one matrix at a time.
                one(index, unsafe { to.part(place(index)) }, Some(cx.team()));
            }
        } else {
            let (tasks, each) =
                crate::gemm::share(triples.len(), triples.len() * m * n * k, cx.team().threads());
            cx.team().run(tasks, &|task| {
                for index in task * each..((task + 1) * each).min(triples.len()) {
                    // SAFETY: each matrix is written by one task.
                    one(index, unsafe { to.part(place(index)) }, None);
                }
            });
        }
        cancel.check()?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// Matrices of a tensor; a vector is one.
fn count(shape: &[usize]) -> usize {
    shape[..shape.len().saturating_sub(2)].iter().product()
}

struct Gemm {
    isa: Isa,
    portable: Portable,
    trans_b: bool,
    panels: Panels,
    /// Reads the rows of a constant b as they lie, for sessions that keep no panels.
    rows: Option<Box<dyn Kernel>>,
}

impl Kernel for Gemm {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        if let Some((rows, columns)) = constant_matrix(cx, 1) {
            let (name, k, n) = match self.trans_b {
                true => ("cpu.f32.panels.transposed", columns, rows),
                false => ("cpu.f32.panels", rows, columns),
            };
            self.panels.claim(cx, name, 1, k, n);
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..3) {
            return self.portable.run(cx);
        }
        if let Some(rows) = &self.rows
            && !self.panels.claimed()
        {
            return rows.run(cx);
        }
        let (a, b) = (cx.dense(0)?, cx.dense(1)?);
        let c = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
        let (&[m, k], &[rows, columns]) = (a.shape(), b.shape()) else { return self.portable.run(cx) };
        let (depth, n) = if self.trans_b { (columns, rows) } else { (rows, columns) };
        let c_shape = c.as_ref().map(|c| Shape::from_slice(c.shape()));
        let by_column = match c_shape.as_deref() {
            None => None,
            Some(&[len] | &[1, len]) if len == n => Some(true),
            Some(&[len, 1]) if len == m => Some(false),
            Some(_) => return self.portable.run(cx),
        };
        if depth != k || m * n * k == 0 {
            return self.portable.run(cx);
        }
        let b_all = b.as_slice::<f32>()?;
        let bias = c.as_ref().map(|c| c.as_slice::<f32>()).transpose()?.unwrap_or(&[]);
        let mut out = cx.alloc(DType::Float, &[m, n])?;
        let start = match by_column {
            None => Start::Zero,
            Some(true) => Start::Column(bias),
            Some(false) => Start::Row(bias),
        };
        let (plain, turned) =
            (Matrix { data: b_all, stride: columns }, Transposed { data: b_all, stride: columns });
        let held = match (self.panels.claimed(), self.trans_b) {
            (true, true) => Some(
                self.panels.get(cx, 1, (k, n), |_| Box::new(Transposed { data: b_all, stride: columns }))?,
            ),
            (true, false) => {
                Some(self.panels.get(cx, 1, (k, n), |_| Box::new(Matrix { data: b_all, stride: columns }))?)
            }
            _ => None,
        };
        let right = match &held {
            Some(held) => Right::Packed(held.floats()),
            None if self.trans_b => Right::Columns(&turned),
            None if m < PACK_ROWS => Right::Rows(b_all, n),
            None => Right::Columns(&plain),
        };
        let product = Product { isa: self.isa, m, n, k, a: a.as_slice()?, lda: k, b: right, start, ldo: n };
        product.run(out.elements_mut(), cx.team(), cx.cancel())?;
        cx.set(0, out.freeze());
        Ok(())
    }
}
