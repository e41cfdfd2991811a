//! [`NonZero`](https://onnx.ai/onnx/operators/onnx__NonZero.html): the coordinates of all elements that are not 0, a column each.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{
    BuildCx, BuildError, CancelToken, Cancelled, Kernel, KernelError, KernelSpec, RunCx, Watch,
};

use crate::attributes::only;
use crate::by_type::by_number;
use crate::elementwise::{Plain, bools, wrong_type};
use crate::numbers::Number;
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "NonZero",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let places: Vec<usize> = if input.dtype() == DType::Bool {
        found(cx.cancel(), bools(&input, 0)?, |&byte| byte != 0)?
    } else {
        by_number!(input.dtype(), T => found(cx.cancel(), input.as_slice::<T>()?, |v| !v.is_zero())?,
            _ => return Err(wrong_type(cx, 0, "numbers or BOOL")))
    };
    let shape = Shape::from_slice(input.shape());
    // A scalar that is not 0 has no coordinates but counts.
    let mut out = cx.alloc(DType::Int64, &[shape.len(), places.len()])?;
    let mut inner = 1;
    let mut rows: Vec<&mut [i64]> = match places.len() {
        0 => Vec::new(),
        count => out.elements_mut::<i64>().chunks_exact_mut(count).collect(),
    };
    for (row, &extent) in rows.iter_mut().zip(&shape).rev() {
        spread::pieces(cx.cancel(), row, |at, row| {
            row.iter_mut().zip(&places[at..]).for_each(|(o, place)| *o = (place / inner % extent) as i64);
        })?;
        inner *= extent;
    }
    drop(rows);
    cx.set(0, out.freeze());
    Ok(())
}

fn found<T>(
    cancel: &CancelToken,
    elements: &[T],
    holds: impl Fn(&T) -> bool,
) -> Result<Vec<usize>, Cancelled> {
    let mut found = Vec::new();
    for (piece, elements) in elements.chunks(Watch::PIECE).enumerate() {
        cancel.check()?;
        let holding = elements.iter().enumerate().filter(|(_, v)| holds(v));
        found.extend(holding.map(|(at, _)| piece * Watch::PIECE + at));
    }
    Ok(found)
}
