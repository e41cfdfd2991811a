//! [`RoiAlign`](https://onnx.ai/onnx/operators/onnx__RoiAlign.html): the mean (or greatest) of interpolated samples
//! in each cell of each region.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers::list;
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RoiAlign",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct RoiAlign {
    half_pixel: bool,
    greatest: bool,
    cells: [usize; 2],
    /// Samples of a cell along each axis; 0: as many as the cell has elements.
    samples: usize,
    scale: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let common = ["mode", "output_height", "output_width", "sampling_ratio", "spatial_scale"];
    only(cx, &[&common[..], if cx.opset < 16 { &[] } else { &["coordinate_transformation_mode"] }].concat())?;
    let attributes = &cx.node.attributes;
    let half_pixel = match attributes.opt_string("coordinate_transformation_mode")? {
        None => cx.opset >= 16,
        Some(b"half_pixel") => true,
        Some(b"output_half_pixel") => false,
        Some(other) => {
            let value = String::from_utf8_lossy(other);
            return Err(unsupported("coordinate_transformation_mode", value, "there is no such mode"));
        }
    };
    let greatest = match attributes.opt_string("mode")? {
        None | Some(b"avg") => false,
        Some(b"max") => true,
        Some(other) => return Err(unsupported("mode", String::from_utf8_lossy(other), "avg and max are")),
    };
    let size = |name: &str, default: i64, least: i64| -> Result<usize, BuildError> {
        let value = attributes.int_or(name, default)?;
        match value >= least && value < 1 << 16 {
            true => Ok(value as usize),
            false => Err(unsupported(name, value, "it lies outside the range of such values")),
        }
    };
    Ok(Box::new(RoiAlign {
        half_pixel,
        greatest,
        cells: [size("output_height", 1, 1)?, size("output_width", 1, 1)?],
        samples: size("sampling_ratio", 0, 0)?,
        scale: f64::from(attributes.float_or("spatial_scale", 1.0)?),
    }))
}

/// The two elements of an axis that a sample lies between, and the weight of the second; none outside.
fn between(x: f64, extent: usize) -> Option<(usize, usize, f64)> {
    if x < -1.0 || x > extent as f64 {
        return None;
    }
    let x = x.max(0.0);
    let low = (x as usize).min(extent - 1);
    let high = (low + 1).min(extent - 1);
    Some((low, high, if high == low { 0.0 } else { x - low as f64 }))
}

impl Kernel for RoiAlign {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, shape, x), (_, roi_shape, rois)) = (input(cx, 0)?, input(cx, 1)?);
        let batches = list(cx, 2)?;
        let fault = || {
            misfit(
                "the input is [batch, channels, height, width], the regions are [regions, 4]",
                &[&shape, &roi_shape],
            )
        };
        let (&[batch, channels, height, width], &[count, 4]) = (&*shape, &*roi_shape) else {
            return Err(fault());
        };
        if batches.len() != count || height == 0 || width == 0 {
            return Err(fault());
        }
        let [rows, columns] = self.cells;
        let mut out = Vec::with_capacity(count * channels * rows * columns);
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        for (roi, &b) in rois.chunks_exact(4).zip(&batches) {
            cx.cancel().check()?;
            let range =
                KernelError::Range { what: "a batch index", value: b, low: 0, high: batch as i64 - 1 };
            let b = usize::try_from(b).ok().filter(|&b| b < batch).ok_or(range)?;
            let [x1, y1, x2, y2] = [0, 1, 2, 3].map(|i| roi[i] * self.scale - offset);
            let size = |from: f64, to: f64| if self.half_pixel { to - from } else { (to - from).max(1.0) };
            let (cell_h, cell_w) = (size(y1, y2) / rows as f64, size(x1, x2) / columns as f64);
            let samples = |cell: f64| match self.samples {
                0 => (cell.ceil().clamp(1.0, 1e4)) as usize,
                samples => samples,
            };
            let (down, across) = (samples(cell_h), samples(cell_w));
            for channel in 0..channels {
                let x = &x[(b * channels + channel) * height * width..][..height * width];
                for row in 0..rows {
                    for column in 0..columns {
                        let (mut sum, mut best) = (0.0, f64::NEG_INFINITY);
                        for i in 0..down {
                            let y = y1 + cell_h * (row as f64 + (i as f64 + 0.5) / down as f64);
                            for j in 0..across {
                                let at = x1 + cell_w * (column as f64 + (j as f64 + 0.5) / across as f64);
                                let parts = match (between(y, height), between(at, width)) {
                                    (Some((y0, y1, v)), Some((x0, x1, u))) => [
                                        x[y0 * width + x0] * (1.0 - v) * (1.0 - u),
                                        x[y0 * width + x1] * (1.0 - v) * u,
                                        x[y1 * width + x0] * v * (1.0 - u),
                                        x[y1 * width + x1] * v * u,
                                    ],
                                    _ => [0.0; 4],
                                };
                                sum += parts.iter().sum::<f64>();
                                // The greatest weighted corner counts, as the standard's reference has it.
                                best = parts.iter().copied().fold(best, f64::max);
                            }
                        }
                        out.push(if self.greatest { best } else { sum / (down * across) as f64 });
                    }
                }
            }
        }
        let out = written(cx, dtype, &[count, channels, rows, columns], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
