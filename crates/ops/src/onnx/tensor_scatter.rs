//! [`TensorScatter`](https://onnx.ai/onnx/operators/onnx__TensorScatter.html): a cache with rows of each sample replaced from
//! a place on, going round at the end where `mode` is `circular`.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

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
    Ok(Box::new(TensorScatter { axis: cx.node.attributes.int_or("axis", -2)?, circular }))
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
