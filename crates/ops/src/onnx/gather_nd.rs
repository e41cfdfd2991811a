//! [`GatherND`](https://onnx.ai/onnx/operators/onnx__GatherND.html): the slices that the rows of the indices name; negative ones
//! count from the end.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GatherND",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// The number of leading axes that data and indices share.
struct GatherNd {
    batch: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset >= 12 { &["batch_dims"] } else { &[] })?;
    let batch = cx.node.attributes.int_or("batch_dims", 0)?;
    let batch = usize::try_from(batch).map_err(|_| unsupported("batch_dims", batch, "it is at least 0"))?;
    Ok(Box::new(GatherNd { batch }))
}

impl Kernel for GatherNd {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (data, indices) = (cx.dense(0)?, cx.dense(1)?);
        let (from, by) = (data.shape(), indices.shape());
        let unfit = || KernelError::Shape {
            what: "`batch_dims` leading extents agree, and a row of indices has at most the axes behind them",
            shapes: vec![Shape::from_slice(from), Shape::from_slice(by)],
        };
        let batch = self.batch;
        let (&width, rows) = by.split_last().ok_or_else(unfit)?;
        if rows.len() < batch || from.len() < batch + width || rows[..batch] != from[..batch] {
            return Err(unfit());
        }
        let (axes, slice) = from[batch..].split_at(width);
        let mut shape = Shape::from_slice(rows);
        shape.extend_from_slice(slice);
        let inner: usize = slice.iter().product();
        let bits = data.dtype().bit_width().map_or(8, |bits| bits as usize);
        if !(inner * bits).is_multiple_of(8) {
            let dtype = data.dtype();
            return Err(KernelError::Other(format!(
                "{dtype} slices that fill no whole bytes cannot be gathered"
            )));
        }
        let mut out = cx.alloc(data.dtype(), &shape)?;
        let places = indices.as_slice::<i64>()?;
        let of_batch: usize = from[batch..].iter().product();
        let in_batch: usize = rows[batch..].iter().product();
        let count: usize = rows.iter().product();
        let mut starts = Vec::with_capacity(if inner == 0 { 0 } else { count });
        let mut watch = cx.cancel().watch();
        for row in 0..count {
            watch.pass(1)?;
            let mut at = row / in_batch * of_batch;
            let mut stride = of_batch;
            for (axis, &extent) in axes.iter().enumerate() {
                stride /= extent.max(1);
                at += place(places[row * width + axis], extent)? * stride;
            }
            if inner != 0 {
                starts.push(at);
            }
        }
        let bytes = data.dense_bytes().unwrap_or(&[]);
        let runs = starts.into_iter().map(|at| &bytes[at * bits / 8..(at + inner) * bits / 8]);
        crate::movement::fill(cx, out.bytes_mut(), runs)?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

fn place(value: i64, extent: usize) -> Result<usize, KernelError> {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    let at = if value < 0 { value.saturating_add(n) } else { value };
    let range = KernelError::Range { what: "an index", value, low: -n, high: n - 1 };
    usize::try_from(at).ok().filter(|&at| at < extent).ok_or(range)
}
