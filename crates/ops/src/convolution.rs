//! Convolutions as products: the windows of the input become columns of a matrix, a few rows of the output at a time.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, CancelToken, Cancelled, KernelError};
use smallvec::SmallVec;

use crate::integers::Ints;
use crate::product::{Ring, product};
use crate::window::{AutoPad, Axes, FoldAxis, Window, for_each_index, outputs, planes, unfold};

/// What is convolved with what.
pub struct Convolution {
    /// Elements of the batch.
    pub batch: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Input channels of a group.
    pub channels: usize,
    /// Output channels of a group.
    pub maps: usize,
    /// The walk over the spatial axes.
    pub axes: Axes,
}

/// About how many elements the columns take.
const COLUMNS: usize = 1 << 18;

impl Convolution {
    /// The convolution of `x` [batch, channels, spatial…] with `w` [maps, channels / groups, kernel…].
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn new(x: &[usize], w: &[usize], groups: usize, window: &Window) -> Result<Convolution, KernelError> {
        let misfit =
            |what| KernelError::Shape { what, shapes: vec![Shape::from_slice(x), Shape::from_slice(w)] };
        let ([batch, channels, spatial @ ..], [maps, per_group, kernel @ ..]) = (x, w) else {
            return Err(misfit("the input and the weight have a batch (of maps), channels and spatial axes"));
        };
        if groups == 0 || per_group * groups != *channels || !maps.is_multiple_of(groups) {
            return Err(misfit("the input's channels are the weight's in each group"));
        }
        if window.kernel.as_ref().is_some_and(|k| !k.iter().map(|&k| k as usize).eq(kernel.iter().copied())) {
            return Err(misfit("`kernel_shape` is the weight's spatial shape"));
        }
        let axes = window.axes(spatial, kernel)?;
        Ok(Convolution { batch: *batch, groups, channels: *per_group, maps: maps / groups, axes })
    }

    /// The output's shape.
    pub fn shape(&self) -> Shape {
        [self.batch, self.groups * self.maps].into_iter().chain(outputs(&self.axes)).collect()
    }

    /// Fills `out` with the sums.
    ///
    /// # Errors
    /// When the call is cancelled.
    pub(crate) fn run<W: Ring>(
        &self,
        x: &[W],
        w: &[W],
        out: &mut [W],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        let (input, output, kernel) = planes(&self.axes);
        let taps: Shape = self.axes.iter().map(|a| a.kernel).collect();
        let depth = self.channels * kernel;
        let last = self.axes.last().map_or(1, |a| a.output);
        if output == 0 || self.maps == 0 {
            return Ok(());
        }
        if depth == 0 {
            out.fill(W::default());
            return Ok(());
        }
        let rows = output / last;
        let block = (COLUMNS / (depth * last)).clamp(1, rows);
        let mut columns = vec![W::default(); depth * block * last];
        let mut sums = vec![W::default(); self.maps * block * last];
        for part in 0..self.batch * self.groups {
            let x = &x[part * self.channels * input..][..self.channels * input];
            let w = &w[part % self.groups * self.maps * depth..][..self.maps * depth];
            let out = &mut out[part * self.maps * output..][..self.maps * output];
            for first in (0..rows).step_by(block) {
                let rows = first..(first + block).min(rows);
                let width = rows.len() * last;
                for (channel, x) in x.chunks_exact(input.max(1)).enumerate() {
                    for_each_index(&taps, |tap, offset| {
                        let to = &mut columns[(channel * kernel + tap) * width..][..width];
                        unfold(x, &self.axes, offset, rows.clone(), W::default(), to);
                    });
                }
                let sums = &mut sums[..self.maps * width];
                product(sums, w, &columns[..depth * width], (width, depth), false, cancel)?;
                for (out, sums) in out.chunks_exact_mut(output).zip(sums.chunks_exact(width)) {
                    out[first * last..][..width].iter_mut().zip(sums).for_each(|(o, &s)| *o = s);
                }
            }
        }
        Ok(())
    }
}

/// A convolution the other way round: each input element spreads over a window of the output.
pub struct Transposed {
    window: Window,
    /// Groups of channels.
    pub groups: usize,
    output_padding: Ints,
    output_shape: Option<Ints>,
}

impl Transposed {
    /// From a node's attributes.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn parse(cx: &BuildCx<'_>) -> Result<Transposed, BuildError> {
        let attributes = &cx.node.attributes;
        Ok(Transposed {
            window: Window::parse(attributes)?,
            groups: crate::onnx::conv::groups(cx)?,
            output_padding: Ints::from_slice(attributes.opt_ints("output_padding")?.unwrap_or(&[])),
            output_shape: attributes.opt_ints("output_shape")?.map(Ints::from_slice),
        })
    }

    /// The axes of an output that inputs of extents `input` spread over.
    ///
    /// # Errors
    /// When the attributes are for another number of axes, or nothing would be left.
    pub fn axes(&self, input: &[usize], kernel: &[usize]) -> Result<SmallVec<[FoldAxis; 3]>, KernelError> {
        let (window, rank) = (&self.window, input.len());
        if kernel.len() != rank || rank == 0 || kernel.contains(&0) || input.contains(&0) {
            return Err(KernelError::Shape {
                what: "the window has one extent of at least 1 for each spatial axis",
                shapes: vec![Shape::from_slice(input), Shape::from_slice(kernel)],
            });
        }
        (0..rank)
            .map(|at| {
                let stride = Window::one_of(&window.strides, at, rank, "the number of strides")?;
                let dilation = Window::one_of(&window.dilations, at, rank, "the number of dilations")?;
                let more = match self.output_padding.get(at) {
                    Some(&more) => crate::integers::extent("an output padding", more)?,
                    None => 0,
                };
                let full = stride * (input[at] - 1) + (kernel[at] - 1) * dilation + 1 + more;
                // The last extents are the spatial ones.
                let asked = self
                    .output_shape
                    .as_ref()
                    .and_then(|shape| shape.len().checked_sub(rank).map(|skip| shape[skip + at]));
                let same = matches!(window.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
                let extent = match asked {
                    Some(extent) => Some(crate::integers::extent("an extent of `output_shape`", extent)?),
                    None if same => Some(input[at] * stride),
                    None => None,
                };
                let (before, extent) = match extent {
                    Some(extent) => {
                        let total = (full as isize - extent as isize).max(0);
                        let less = total / 2;
                        (if window.auto_pad == AutoPad::SameLower { total - less } else { less }, extent)
                    }
                    None => {
                        let (before, after) = match window.auto_pad {
                            AutoPad::Valid => (0, 0),
                            _ => window.pads_of(at, rank)?,
                        };
                        let extent = full.checked_sub(before + after).ok_or(KernelError::Range {
                            what: "the pads of an output",
                            value: (before + after) as i64,
                            low: 0,
                            high: full as i64,
                        })?;
                        (before as isize, extent)
                    }
                };
                Ok(FoldAxis { extent, blocks: input[at], stride, dilation, before })
            })
            .collect()
    }
}
