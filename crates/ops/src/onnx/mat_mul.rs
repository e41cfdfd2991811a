//! [`MatMul`](https://onnx.ai/onnx/operators/onnx__MatMul.html): matrix products as NumPy's `matmul`: leading axes broadcast,
//! vectors become matrices for the product.

use half::{bf16, f16};
use heirloom_mem::{Element, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast::{self, Walk};
use crate::by_type::by_type;
use crate::elementwise::{Plain, common_type, wrong_type};
use crate::product::{Ring, product};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMul",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let dtype = common_type(cx, 2)?;
    let (a, b) = (matrices(cx, 0)?, matrices(cx, 1)?);
    let shapes = Shapes::new(a.shape(), b.shape())?;
    by_type!(dtype, [f32, f64, i32, i64, u32, u64], T => exact::<T>(cx, &shapes, &a, &b), _ => {
        by_type!(dtype, [f16, bf16], T => widened::<T>(cx, &shapes, &a, &b),
            _ => Err(wrong_type(cx, 0, "FLOAT, FLOAT16, BFLOAT16, DOUBLE or integers of 32 or 64 bits")))
    })
}

/// What is multiplied with what.
pub struct Shapes {
    /// Rows of A's matrices.
    pub m: usize,
    /// Columns of B's.
    pub n: usize,
    /// Columns of A's and rows of B's.
    pub k: usize,
    a_batch: Shape,
    b_batch: Shape,
    batch: Shape,
    /// The result's shape.
    pub result: Shape,
}

impl Shapes {
    /// From the shapes of A and B.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn new(a: &[usize], b: &[usize]) -> Result<Shapes, KernelError> {
        let misfit = || KernelError::Shape {
            what: "the last extent of A is the last but one of B",
            shapes: vec![Shape::from_slice(a), Shape::from_slice(b)],
        };
        let (a_batch, m, k) = match a {
            [] => return Err(misfit()),
            [k] => (&[][..], 1, *k),
            [batch @ .., m, k] => (batch, *m, *k),
        };
        let (b_batch, rows, n) = match b {
            [] => return Err(misfit()),
            [k] => (&[][..], *k, 1),
            [batch @ .., k, n] => (batch, *k, *n),
        };
        if rows != k {
            return Err(misfit());
        }
        let batch = broadcast::shape(&[a_batch, b_batch])?;
        let mut result = batch.clone();
        result.extend((a.len() > 1).then_some(m));
        result.extend((b.len() > 1).then_some(n));
        let (a_batch, b_batch) = (Shape::from_slice(a_batch), Shape::from_slice(b_batch));
        Ok(Shapes { m, n, k, a_batch, b_batch, batch, result })
    }

    /// Calls `f` with the index of each result matrix and of the two it is made from.
    pub fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        let walk = Walk::new(&self.batch, [&self.a_batch, &self.b_batch]);
        walk.for_each(|at, [a, b]| {
            (0..walk.run).for_each(|i| f(at + i, a + i * walk.step[0], b + i * walk.step[1]));
        });
    }

    fn multiply<T: Ring>(
        &self,
        cx: &RunCx<'_>,
        out: &mut [T],
        a: &impl Matrices<T>,
        b: &impl Matrices<T>,
    ) -> Result<(), KernelError> {
        let &Shapes { m, n, k, .. } = self;
        let mut result = Ok(());
        self.each(|at, i, j| {
            if result.is_ok() {
                let out = &mut out[at * m * n..(at + 1) * m * n];
                result = a.matrix(i, m * k).and_then(|a| {
                    let b = b.matrix(j, k * n)?;
                    Ok(product(out, a, b, (n, k), false, cx.cancel())?)
                });
            }
        });
        result
    }
}

/// Matrices one behind the other, or those of a cache with room between them.
trait Matrices<T> {
    /// Matrix `index`, of `len` elements.
    fn matrix(&self, index: usize, len: usize) -> Result<&[T], KernelError>;
}

impl<T> Matrices<T> for Vec<T> {
    fn matrix(&self, index: usize, len: usize) -> Result<&[T], KernelError> {
        Ok(&self[index * len..(index + 1) * len])
    }
}

impl<T: Element> Matrices<T> for Tensor {
    fn matrix(&self, index: usize, len: usize) -> Result<&[T], KernelError> {
        match self.run_count() {
            Some(runs) if runs > 1 => Ok(self.block(runs, index)?),
            _ => Ok(&self.as_slice::<T>()?[index * len..(index + 1) * len]),
        }
    }
}

/// Input `index`: as it is where it is a cache of whole matrices, else dense.
fn matrices(cx: &RunCx<'_>, index: usize) -> Result<Tensor, KernelError> {
    let tensor = cx.tensor(index)?;
    match tensor.append_view() {
        Some((view, axis)) if axis + 2 == tensor.shape().len() && view.segments_are_one() => {
            Ok(tensor.clone())
        }
        _ => cx.dense(index),
    }
}

fn exact<T: Element + Ring>(
    cx: &mut RunCx<'_>,
    shapes: &Shapes,
    a: &Tensor,
    b: &Tensor,
) -> Result<(), KernelError> {
    let mut out = cx.alloc(T::DTYPE, &shapes.result)?;
    shapes.multiply::<T>(cx, out.elements_mut(), a, b)?;
    cx.set(0, out.freeze());
    Ok(())
}

fn widened<T: Real>(cx: &mut RunCx<'_>, shapes: &Shapes, a: &Tensor, b: &Tensor) -> Result<(), KernelError> {
    let wide = |tensor: &Tensor| -> Result<Vec<f32>, KernelError> {
        let mut list = Vec::with_capacity(tensor.len());
        let runs = tensor.run_count().unwrap_or(1);
        for run in 0..runs {
            list.extend(tensor.block::<T>(runs, run)?.iter().map(|v| v.to_f32()));
        }
        Ok(list)
    };
    let (a, b) = (wide(a)?, wide(b)?);
    let mut out = cx.alloc(T::DTYPE, &shapes.result)?;
    let mut sums = vec![0.0f32; out.elements_mut::<T>().len()];
    shapes.multiply(cx, &mut sums, &a, &b)?;
    out.elements_mut::<T>().iter_mut().zip(sums).for_each(|(o, v)| *o = T::from_f32(v));
    cx.set(0, out.freeze());
    Ok(())
}
