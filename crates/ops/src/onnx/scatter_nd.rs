//! [`ScatterND`](https://onnx.ai/onnx/operators/onnx__ScatterND.html): data with slices replaced by updates; the last axis of
//! the indices is the place of one slice. Negative indices count from the end.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers;
use crate::movement::shape_of;
use crate::onnx::gather::places;
use crate::scatter::{Reduction, reduction, scatter};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ScatterND",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ScatterNd {
    reduction: Reduction,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 16 { &[] } else { &["reduction"] })?;
    Ok(Box::new(ScatterNd { reduction: reduction(cx)? }))
}

impl Kernel for ScatterNd {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let index_shape = Shape::from_slice(cx.tensor(1)?.shape());
        let depth = index_shape.last().copied().filter(|&depth| depth <= shape.len());
        let depth = depth.ok_or_else(|| KernelError::Shape {
            what: "the last axis of indices names at most as many axes as the data have",
            shapes: vec![shape.clone(), index_shape.clone()],
        })?;
        let indices = integers::list(cx, 1)?;
        let count: usize = index_shape[..index_shape.len() - 1].iter().product();
        let run: usize = shape[depth..].iter().product();
        let mut starts = vec![0; count];
        for axis in 0..depth {
            let along: integers::Ints = indices.iter().skip(axis).step_by(depth).copied().collect();
            for (start, place) in starts.iter_mut().zip(places(&along, shape[axis])?) {
                *start = *start * shape[axis] + place;
            }
        }
        starts.iter_mut().for_each(|start| *start *= run);
        let value = scatter(cx, 2, &starts, run, self.reduction)?;
        cx.set(0, value);
        Ok(())
    }
}
