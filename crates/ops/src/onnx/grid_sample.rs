//! [`GridSample`](https://onnx.ai/onnx/operators/onnx__GridSample.html): a picture sampled at places that a grid
//! gives, between -1 and 1.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use smallvec::SmallVec;

use crate::attributes::{only, unsupported};
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GridSample",
    versions: (16, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

struct GridSample {
    align_corners: bool,
    mode: Mode,
    padding: Padding,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["align_corners", "mode", "padding_mode"])?;
    let attributes = &cx.node.attributes;
    let mode = match attributes.opt_string("mode")? {
        None | Some(b"linear" | b"bilinear") => Mode::Linear,
        Some(b"nearest") => Mode::Nearest,
        Some(b"cubic" | b"bicubic") => Mode::Cubic,
        Some(other) => {
            return Err(unsupported("mode", String::from_utf8_lossy(other), "there is no such mode"));
        }
    };
    let padding = match attributes.opt_string("padding_mode")? {
        None | Some(b"zeros") => Padding::Zeros,
        Some(b"border") => Padding::Border,
        Some(b"reflection") => Padding::Reflection,
        Some(other) => {
            return Err(unsupported("padding_mode", String::from_utf8_lossy(other), "there is no such mode"));
        }
    };
    let align_corners = attributes.int_or("align_corners", 0)? != 0;
    Ok(Box::new(GridSample { align_corners, mode, padding }))
}

/// Reflects `x` at two borders until it lies between them.
fn reflect(x: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let away = (x - low).rem_euclid(2.0 * range);
    low + if away > range { 2.0 * range - away } else { away }
}

impl GridSample {
    /// The place in the plane that a coordinate of the grid stands for.
    fn place(&self, x: f64, extent: usize) -> f64 {
        let n = extent as f64;
        if self.align_corners { (x + 1.0) / 2.0 * (n - 1.0) } else { ((x + 1.0) * n - 1.0) / 2.0 }
    }

    /// Within the plane, as the padding says; zeros leave it alone.
    fn fold(&self, x: f64, extent: usize) -> f64 {
        let last = extent as f64 - 1.0;
        match self.padding {
            Padding::Zeros => x,
            Padding::Border => x.clamp(0.0, last),
            Padding::Reflection => {
                let (low, high) = if self.align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
                reflect(x, low, high).clamp(0.0, last)
            }
        }
    }

    /// The elements of an axis, and their weights, at `x`.
    fn taps(&self, x: f64, extent: usize) -> SmallVec<[(Option<usize>, f64); 4]> {
        let within = |i: f64| {
            // A cubic filter reaches beyond the plane, wherever its middle is.
            let i = if self.mode == Mode::Cubic { self.fold(i, extent).round() } else { i };
            (i >= 0.0 && i < extent as f64).then_some(i as usize)
        };
        match self.mode {
            Mode::Nearest => {
                let x = self.fold(x, extent).round_ties_even();
                SmallVec::from_slice(&[(within(x), 1.0)])
            }
            Mode::Linear => {
                let x = self.fold(x, extent);
                let first = x.floor();
                SmallVec::from_slice(&[(within(first), 1.0 - (x - first)), (within(first + 1.0), x - first)])
            }
            Mode::Cubic => {
                let first = x.floor();
                let t = x - first;
                let a = -0.75;
                let near = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
                let far = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
                let weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
                weights.iter().enumerate().map(|(i, &w)| (within(first - 1.0 + i as f64), w)).collect()
            }
        }
    }
}

impl Kernel for GridSample {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, x_shape, x), (_, grid_shape, grid)) = (input(cx, 0)?, input(cx, 1)?);
        let fault = || {
            misfit(
                "the input is [batch, channels, n spatial extents], the grid [batch, places…, n]",
                &[&x_shape, &grid_shape],
            )
        };
        let ([batch, channels, spatial @ ..], [grid_batch, places @ .., n]) = (&*x_shape, &*grid_shape)
        else {
            return Err(fault());
        };
        if batch != grid_batch || spatial.len() != *n || places.len() != *n || spatial.contains(&0) {
            return Err(fault());
        }
        let plane: usize = spatial.iter().product();
        let count: usize = places.iter().product();
        let mut out = vec![0.0; batch * channels * count];
        let mut watch = cx.cancel().watch();
        for b in 0..*batch {
            for at in 0..count {
                watch.pass(8 * channels.max(&8))?;
                let point = &grid[(b * count + at) * n..][..*n];
                // Elements of the plane and their weights, from the outermost axis in.
                let mut taps: Vec<(Option<usize>, f64)> = vec![(Some(0), 1.0)];
                for (axis, &extent) in spatial.iter().enumerate() {
                    let own = self.taps(self.place(point[n - 1 - axis], extent), extent);
                    taps = taps
                        .iter()
                        .flat_map(|&(place, weight)| {
                            own.iter()
                                .map(move |&(i, w)| (place.zip(i).map(|(p, i)| p * extent + i), weight * w))
                        })
                        .collect();
                }
                for c in 0..*channels {
                    let x = &x[(b * channels + c) * plane..][..plane];
                    let value = taps.iter().filter_map(|&(place, w)| place.map(|p| x[p] * w)).sum();
                    out[(b * channels + c) * count + at] = value;
                }
            }
        }
        let shape: Shape = [*batch, *channels].into_iter().chain(places.iter().copied()).collect();
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        Ok(())
    }
}
