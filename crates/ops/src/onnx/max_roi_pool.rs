//! [`MaxRoiPool`](https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html): the greatest element of each cell of each
//! region.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MaxRoiPool",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MaxRoiPool {
    cells: [usize; 2],
    scale: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["pooled_shape", "spatial_scale"])?;
    let cells = match *cx.node.attributes.ints("pooled_shape")? {
        [rows, columns] if rows > 0 && columns > 0 => [rows as usize, columns as usize],
        ref other => {
            return Err(unsupported(
                "pooled_shape",
                format!("{other:?}"),
                "it has two extents of at least 1",
            ));
        }
    };
    Ok(Box::new(MaxRoiPool { cells, scale: f64::from(cx.node.attributes.float_or("spatial_scale", 1.0)?) }))
}

impl Kernel for MaxRoiPool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, shape, x), (_, roi_shape, rois)) = (input(cx, 0)?, input(cx, 1)?);
        let fault = || {
            misfit(
                "the input is [batch, channels, height, width], the regions are [regions, 5]",
                &[&shape, &roi_shape],
            )
        };
        let (&[batch, channels, height, width], &[count, 5]) = (&*shape, &*roi_shape) else {
            return Err(fault());
        };
        let [rows, columns] = self.cells;
        let mut out = Vec::with_capacity(count * channels * rows * columns);
        for roi in rois.chunks_exact(5) {
            cx.cancel().check()?;
            let b = roi[0] as usize;
            if b >= batch {
                return Err(KernelError::Range {
                    what: "a batch index",
                    value: roi[0] as i64,
                    low: 0,
                    high: batch as i64 - 1,
                });
            }
            let [x1, y1, x2, y2] = [1, 2, 3, 4].map(|i| (roi[i] * self.scale).round());
            let (cell_h, cell_w) =
                ((y2 - y1 + 1.0).max(1.0) / rows as f64, (x2 - x1 + 1.0).max(1.0) / columns as f64);
            let part = |first: f64, cell: f64, at: usize, extent: usize| {
                let clip = |v: f64| v.clamp(0.0, extent as f64) as usize;
                clip((at as f64 * cell).floor() + first)..clip(((at + 1) as f64 * cell).ceil() + first)
            };
            for channel in 0..channels {
                let x = &x[(b * channels + channel) * height * width..][..height * width];
                for row in 0..rows {
                    for column in 0..columns {
                        let (ys, xs) = (part(y1, cell_h, row, height), part(x1, cell_w, column, width));
                        let cells = ys.flat_map(|y| xs.clone().map(move |c| x[y * width + c]));
                        let best = cells.fold(f64::NEG_INFINITY, f64::max);
                        out.push(if best == f64::NEG_INFINITY { 0.0 } else { best });
                    }
                }
            }
        }
        let out = written(cx, dtype, &[count, channels, rows, columns], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
