//! [`MatMulInteger`](https://onnx.ai/onnx/operators/onnx__MatMulInteger.html): the product of two matrices of 8-bit codes less
//! their zero points, in INT32.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::mat_mul::Shapes;
use crate::attributes::only;
use crate::elementwise::Plain;
use crate::product::product;
use crate::quantized::integers;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMulInteger",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (shapes, sums) = sums(cx, [0, 1], [2, 3])?;
    let mut out = cx.alloc(DType::Int32, &shapes.result)?;
    out.elements_mut::<i32>().iter_mut().zip(sums).for_each(|(o, s)| *o = s);
    cx.set(0, out.freeze());
    Ok(())
}

/// The codes of matrices less the zero points, which are one, or one for each row (of A), or column (of B).
pub(crate) fn centred(
    cx: &RunCx<'_>,
    index: usize,
    zero: usize,
    by_row: bool,
) -> Result<(Tensor, Vec<i32>), KernelError> {
    let tensor = cx.dense(index)?;
    let mut codes = integers(cx, index, &tensor)?;
    if cx.opt_tensor(zero)?.is_some() {
        let points = cx.dense(zero)?;
        let zeros = integers(cx, zero, &points)?;
        let shape = tensor.shape();
        let columns = shape.last().copied().unwrap_or(1);
        let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
        // Where leading axes have zero points of their own, all of them do.
        let own = if by_row { rows } else { columns };
        let batches = zeros.len() / own.max(1);
        let total = shape.iter().product::<usize>() / (rows * columns).max(1);
        let fits = zeros.len() == 1 || (own * batches == zeros.len() && (batches == 1 || batches == total));
        if !fits {
            return Err(KernelError::Shape {
                what: "there is one zero point, or one for each row of A or column of B",
                shapes: vec![Shape::from_slice(shape), Shape::from_slice(points.shape())],
            });
        }
        for (at, code) in codes.iter_mut().enumerate() {
            let batch = if batches > 1 { at / (rows * columns) } else { 0 };
            let place = if by_row { at / columns % rows } else { at % columns };
            *code -= if zeros.len() == 1 { zeros[0] } else { zeros[batch * own + place] };
        }
    }
    Ok((tensor, codes))
}

/// The products of two inputs with their zero points.
pub(crate) fn sums(
    cx: &RunCx<'_>,
    inputs: [usize; 2],
    zeros: [usize; 2],
) -> Result<(Shapes, Vec<i32>), KernelError> {
    let (a, xs) = centred(cx, inputs[0], zeros[0], true)?;
    let (b, ws) = centred(cx, inputs[1], zeros[1], false)?;
    let shapes = Shapes::new(a.shape(), b.shape())?;
    let (m, n, k) = (shapes.m, shapes.n, shapes.k);
    let mut sums = vec![0; shapes.result.iter().product()];
    let mut result = Ok(());
    shapes.each(|at, i, j| {
        if result.is_ok() {
            let (a, b) = (&xs[i * m * k..][..m * k], &ws[j * k * n..][..k * n]);
            result = product(&mut sums[at * m * n..][..m * n], a, b, (n, k), false, cx.cancel());
        }
    });
    result?;
    Ok((shapes, sums))
}
