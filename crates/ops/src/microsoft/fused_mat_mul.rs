//! `FusedMatMul`: `alpha * A' * B'`, the last two axes of A and B exchanged on request.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::onnx::mat_mul::Shapes;
use crate::product::product;
use crate::reals::{input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "FusedMatMul",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct FusedMatMul {
    alpha: f64,
    trans_a: bool,
    trans_b: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha", "transA", "transB", "transBatchA", "transBatchB"])?;
    let attributes = &cx.node.attributes;
    for name in ["transBatchA", "transBatchB"] {
        if attributes.int_or(name, 0)? != 0 {
            return Err(unsupported(name, 1, "batches stay in front"));
        }
    }
    Ok(Box::new(FusedMatMul {
        alpha: f64::from(attributes.float_or("alpha", 1.0)?),
        trans_a: attributes.int_or("transA", 0)? != 0,
        trans_b: attributes.int_or("transB", 0)? != 0,
    }))
}

/// Exchanges the last two axes.
fn exchange(shape: &mut [usize], values: &mut [f64]) {
    let [.., rows, columns] = shape else { return };
    let (r, c) = (*rows, *columns);
    for matrix in values.chunks_exact_mut((r * c).max(1)) {
        let turned: Vec<f64> =
            (0..c).flat_map(|j| (0..r).map(move |i| (i, j))).map(|(i, j)| matrix[i * c + j]).collect();
        matrix.iter_mut().zip(turned).for_each(|(m, t)| *m = t);
    }
    (*rows, *columns) = (c, r);
}

impl Kernel for FusedMatMul {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, mut a_shape, mut a), (_, mut b_shape, mut b)) = (input(cx, 0)?, input(cx, 1)?);
        if self.trans_a {
            exchange(&mut a_shape, &mut a);
        }
        if self.trans_b {
            exchange(&mut b_shape, &mut b);
        }
        let shapes = Shapes::new(&a_shape, &b_shape)?;
        let (m, n, k) = (shapes.m, shapes.n, shapes.k);
        let mut sums = vec![0.0; shapes.result.iter().product()];
        let mut result = Ok(());
        shapes.each(|at, i, j| {
            if result.is_ok() {
                let (a, b) = (&a[i * m * k..][..m * k], &b[j * k * n..][..k * n]);
                result = product(&mut sums[at * m * n..][..m * n], a, b, (n, k), false, cx.cancel());
            }
        });
        result?;
        sums.iter_mut().for_each(|s| *s *= self.alpha);
        let out = written(cx, dtype, &shapes.result, &sums)?;
        cx.set(0, out);
        Ok(())
    }
}
