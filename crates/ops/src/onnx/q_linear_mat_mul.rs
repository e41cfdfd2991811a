//! [`QLinearMatMul`](https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html): a product of quantized matrices with a
//! quantized result.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::Overflow;

use super::mat_mul_integer::sums;
use crate::attributes::only;
use crate::elementwise::{Plain, wrong_type};
use crate::quantized::{Target, floats, integers, write_codes};
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "QLinearMatMul",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

/// Which of a list of parameters belongs to a row or column.
fn of<T: Copy>(list: &[T], at: usize) -> T {
    if list.len() == 1 { list[0] } else { list[at % list.len()] }
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (shapes, sums) = sums(cx, [0, 3], [2, 5])?;
    let (a_scales, b_scales, y_scales) = (floats(cx, 1)?, floats(cx, 4)?, floats(cx, 6)?);
    let zero = cx.dense(7)?;
    let zeros = integers(cx, 7, &zero)?;
    let target = Target::of(zero.dtype()).ok_or_else(|| wrong_type(cx, 7, "UINT8 or INT8"))?;
    let (m, n) = (shapes.m, shapes.n);
    let rows = sums.len() / n.max(1);
    let by_row = |len: usize| len == 1 || len == m || len == rows;
    let by_column = |len: usize| len == 1 || len == n || len.is_multiple_of(n.max(1));
    if !by_row(a_scales.len())
        || !by_column(b_scales.len())
        || !by_row(y_scales.len())
        || !by_row(zeros.len())
    {
        return Err(misfit(
            "there is one scale, or one for each row of A and of the result and each column of B",
            &[&shapes.result],
        ));
    }
    let batches = rows / m.max(1);
    let codes: Vec<i32> = sums
        .iter()
        .enumerate()
        .map(|(at, &sum)| {
            let (row, column) = (at / n, at % n);
            // Scales of B for each matrix of a batch stand one behind the other.
            let own = if b_scales.len() == n * batches { row / m * n + column } else { column };
            let factor = of(&a_scales, row) * of(&b_scales, own) / of(&y_scales, row);
            target.code(sum as f32 * factor, of(&zeros, row), Overflow::Saturate)
        })
        .collect();
    let mut out = cx.alloc(zero.dtype(), &shapes.result)?;
    write_codes(&mut out, &codes);
    cx.set(0, out.freeze());
    Ok(())
}
