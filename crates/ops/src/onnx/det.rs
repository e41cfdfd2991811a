//! [`Det`](https://onnx.ai/onnx/operators/onnx__Det.html): the determinant of each square matrix.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_real;
use crate::elementwise::{Plain, wrong_type};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Det",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_real),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    by_real!(cx.tensor(0)?.dtype(), T => det::<T>(cx), _ => Err(wrong_type(cx, 0, "floating-point numbers")))
}

fn det<T: Numeric>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let shape = Shape::from_slice(input.shape());
    let [ref batch @ .., n, columns] = shape[..] else {
        return Err(KernelError::Shape { what: "a matrix has two axes", shapes: vec![shape] });
    };
    if n != columns {
        return Err(KernelError::Shape { what: "the matrices are square", shapes: vec![shape.clone()] });
    }
    let mut out = cx.alloc(T::DTYPE, batch)?;
    let from = input.as_slice::<T>()?;
    let mut watch = cx.cancel().watch();
    for (at, o) in out.elements_mut::<T>().iter_mut().enumerate() {
        watch.pass(n.saturating_pow(3) / 4)?;
        let matrix = from[at * n * n..(at + 1) * n * n].iter().map(|v| v.up().to_f64()).collect();
        *o = T::down(T::Wide::from_f64(eliminated(matrix, n)));
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// The product of the diagonal once all below it is eliminated, with a sign for each exchange of rows.
fn eliminated(mut matrix: Vec<f64>, n: usize) -> f64 {
    let mut det = 1.0;
    for column in 0..n {
        let magnitude = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| magnitude(a).total_cmp(&magnitude(b))).unwrap_or(column);
        if matrix[pivot * n + column] == 0.0 {
            return 0.0;
        }
        if pivot != column {
            (0..n).for_each(|at| matrix.swap(pivot * n + at, column * n + at));
            det = -det;
        }
        let (above, below) = matrix.split_at_mut((column + 1) * n);
        let row = &above[column * n..];
        det *= row[column];
        for other in below.chunks_exact_mut(n) {
            let factor = other[column] / row[column];
            other.iter_mut().zip(row).for_each(|(o, v)| *o -= factor * v);
        }
    }
    det
}
