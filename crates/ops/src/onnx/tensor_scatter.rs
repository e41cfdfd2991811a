//! [`TensorScatter`](https://onnx.ai/onnx/operators/onnx__TensorScatter.html): a cache with rows of each sample replaced from
//! a place on, going round at the end where `mode` is `circular`. Where all samples have them at one place, the new rows
//! alone are written.

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};
use heirloom_types::Value;

use crate::attributes::{only, unsupported};
use crate::integers;
use crate::movement::shape_of;
use crate::scatter::{Reduction, scatter};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "TensorScatter",
    versions: (24, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct TensorScatter {
    axis: i64,
    circular: bool,
    /// Input 0 is retained from the output: it is a cache from the first call on.
    cache: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "mode"])?;
    let circular = match cx.node.attributes.opt_string("mode")? {
        None | Some(b"linear") => false,
        Some(b"circular") => true,
        Some(other) => {
            return Err(unsupported("mode", String::from_utf8_lossy(other), "linear and circular are"));
        }
    };
    let cache = cx.inputs.first().and_then(Option::as_ref).is_some_and(|past| past.next == Some(0));
    Ok(Box::new(TensorScatter { axis: cx.node.attributes.int_or("axis", -2)?, circular, cache }))
}

impl Kernel for TensorScatter {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, update) = (shape_of(cx, 0)?, shape_of(cx, 1)?);
        let axis = normalize_axis(self.axis, shape.len())?;
        let fits = update.len() == shape.len()
            && axis > 0
            && shape
                .iter()
                .zip(&update)
                .enumerate()
                .all(|(at, (s, u))| if at == axis { u <= s } else { u == s });
        if !fits {
            return Err(KernelError::Shape {
                what: "update and cache differ along the axis only, which is not the first",
                shapes: vec![shape, update],
            });
        }
        let (rows, capacity) = (update[axis], shape[axis]);
        let first = match integers::opt_list(cx, 2)? {
            None => integers::Ints::from_elem(0, shape[0]),
            Some(list) if list.len() == shape[0] => list,
            Some(list) => {
                return Err(KernelError::Shape {
                    what: "there is one write index for each sample",
                    shapes: vec![shape, Shape::from_slice(&[list.len()])],
                });
            }
        };
        if let Some(value) = self.in_place(cx, &first, axis, &shape, rows)? {
            cx.set(0, value);
            return Ok(());
        }
        let run: usize = shape[axis + 1..].iter().product();
        let within: usize = shape[1..axis].iter().product();
        let mut starts = Vec::with_capacity(shape[0] * within * rows);
        for (sample, &first) in first.iter().enumerate() {
            for block in sample * within..(sample + 1) * within {
                for row in 0..rows {
                    starts.push((block * capacity + self.row(first, row, rows, capacity)?) * run);
                }
            }
        }
        let value = scatter(cx, 1, &starts, run, Reduction::Replace)?;
        cx.set(0, value);
        Ok(())
    }
}

impl TensorScatter {
    /// The cache with the new rows behind those that earlier calls wrote, where all samples have them at one place: nothing
    /// else is copied. `None` where that does not apply.
    fn in_place(
        &self,
        cx: &mut RunCx<'_>,
        first: &[i64],
        axis: usize,
        shape: &[usize],
        rows: usize,
    ) -> Result<Option<Tensor>, KernelError> {
        let whole_bytes = |tensor: &Tensor| tensor.dtype().bit_width().is_some_and(|bits| bits % 8 == 0);
        let (Some(Value::Tensor(past)), Some(Value::Tensor(update))) = (cx.value(0), cx.value(1)) else {
            return Ok(None);
        };
        let dtype = past.dtype();
        let one_place = first.windows(2).all(|pair| pair[0] == pair[1]);
        let start = first.first().and_then(|&first| usize::try_from(first).ok());
        let start = start.map(|start| if self.circular { start % shape[axis].max(1) } else { start });
        let fits = start.filter(|start| start.checked_add(rows).is_some_and(|end| end <= shape[axis]));
        // A cache that is no state, and nobody's cache yet, is written as a whole.
        let grows = self.cache || past.append_view().is_some_and(|(_, at)| at == axis);
        let (Some(start), true) = (fits, grows && one_place && whole_bytes(past) && dtype == update.dtype())
        else {
            return Ok(None);
        };
        let update = cx.dense(1)?;
        let bytes = update.dense_bytes().unwrap_or(&[]);
        let mut slot = cx.append_over(0, axis, start, rows)?;
        let outer: usize = shape[..axis].iter().product();
        let run = bytes.len() / outer.max(1);
        for block in 0..outer {
            slot.fill(block, [&bytes[block * run..(block + 1) * run]]);
        }
        Ok(Some(cx.commit(slot, dtype, &shape[..axis], &shape[axis + 1..])?))
    }

    fn row(&self, first: i64, row: usize, rows: usize, capacity: usize) -> Result<usize, KernelError> {
        let high = i64::try_from(if self.circular { capacity } else { capacity - rows }).unwrap_or(i64::MAX);
        let range = || KernelError::Range { what: "a write index", value: first, low: 0, high };
        let at = usize::try_from(first).map_err(|_| range())?.checked_add(row).ok_or_else(range)?;
        match self.circular {
            true => Ok(at % capacity),
            false if at < capacity => Ok(at),
            false => Err(range()),
        }
    }
}
