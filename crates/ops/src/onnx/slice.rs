//! [`Slice`](https://onnx.ai/onnx/operators/onnx__Slice.html): parts along some axes, with steps. In place where the part is
//! dense, or rows of a cache: a window that moves over one.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers::{self, Ints};
use crate::movement::{View, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Slice",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// Before version 10 starts, ends and axes are attributes.
struct Slice {
    fixed: Option<(Ints, Ints, Option<Ints>)>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    if cx.opset >= 10 {
        only(cx, &[])?;
        return Ok(Box::new(Slice { fixed: None }));
    }
    only(cx, &["starts", "ends", "axes"])?;
    let attributes = &cx.node.attributes;
    let (starts, ends) = (attributes.ints("starts")?, attributes.ints("ends")?);
    let axes = attributes.opt_ints("axes")?.map(Ints::from_slice);
    Ok(Box::new(Slice { fixed: Some((Ints::from_slice(starts), Ints::from_slice(ends), axes)) }))
}

impl Kernel for Slice {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (starts, ends, axes, steps) = match &self.fixed {
            Some((starts, ends, axes)) => (starts.clone(), ends.clone(), axes.clone(), None),
            None => (
                integers::list(cx, 1)?,
                integers::list(cx, 2)?,
                integers::opt_list(cx, 3)?,
                integers::opt_list(cx, 4)?,
            ),
        };
        let shape = shape_of(cx, 0)?;
        let axes = axes.unwrap_or_else(|| (0..i64::try_from(starts.len()).unwrap_or(i64::MAX)).collect());
        let steps = steps.unwrap_or_else(|| Ints::from_elem(1, starts.len()));
        if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
            return Err(KernelError::Other(format!(
                "starts, ends, axes and steps have {}, {}, {} and {} elements; they need as many each",
                starts.len(),
                ends.len(),
                axes.len(),
                steps.len()
            )));
        }
        integers::axes(&axes, shape.len())?;
        let mut view = View::whole(&shape);
        // What a cache along its axis is shortened to.
        let mut rows = cx
            .opt_tensor(0)
            .ok()
            .flatten()
            .and_then(|tensor| tensor.append_view().map(|(view, axis)| (axis, 0, view.len())));
        for (((&start, &end), &axis), &step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
            let axis = heirloom_runtime::normalize_axis(axis, shape.len())?;
            let (first, count) = part(shape[axis], start, end, step)?;
            view.base += first * view.strides[axis].unsigned_abs();
            view.shape[axis] = count;
            view.strides[axis] =
                view.strides[axis].saturating_mul(isize::try_from(step).unwrap_or(isize::MAX));
            rows = match rows {
                Some((at, begin, _)) if at == axis && step == 1 => {
                    Some((at, begin + first, begin + first + count))
                }
                // All of another axis, once.
                rows if count == shape[axis] && step == 1 => rows,
                _ => None,
            };
        }
        let part = rows.and_then(|(_, start, end)| cx.tensor(0).ok()?.append_part(start, end));
        if let Some(part) = part {
            cx.set(0, part);
            return Ok(());
        }
        if view.shape.contains(&0) {
            view.base = 0;
        }
        let value = materialize(cx, 0, &view)?;
        cx.set(0, value);
        Ok(())
    }
}

/// The first index of a part and how many there are.
fn part(extent: usize, start: i64, end: i64, step: i64) -> Result<(usize, usize), KernelError> {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
    let count = match step {
        0 => return Err(KernelError::Range { what: "a step", value: 0, low: 1, high: i64::MAX }),
        1.. => {
            let (start, end) = (from_end(start).clamp(0, n), from_end(end).clamp(0, n));
            (start, (end - start).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
        }
        _ => {
            let (start, end) = (from_end(start).clamp(0, (n - 1).max(0)), from_end(end).clamp(-1, n - 1));
            let count =
                if n == 0 { 0 } else { (start - end).max(0).unsigned_abs().div_ceil(step.unsigned_abs()) };
            (start, count)
        }
    };
    Ok((usize::try_from(count.0).unwrap_or(0), usize::try_from(count.1).unwrap_or(0)))
}
