//! Windows that slide over spatial axes: the geometry that convolutions and pools share.

use heirloom_graph::Attributes;
use heirloom_mem::Shape;
use heirloom_runtime::{BuildError, Cancelled, KernelError, Watch};
use smallvec::SmallVec;

use crate::attributes::unsupported;
use crate::integers::Ints;

/// How padding follows from the other parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AutoPad {
    /// As given.
    NotSet,
    /// None.
    Valid,
    /// As much as makes `output = ceil(input / stride)`; an odd one more behind.
    SameUpper,
    /// The same, an odd one more in front.
    SameLower,
}

/// The attributes of a sliding window; empty lists stand for their defaults.
#[derive(Clone, Debug)]
pub struct Window {
    /// Extents of the window, where the attribute gives them.
    pub kernel: Option<Ints>,
    /// From one position to the next, by axis.
    pub strides: Ints,
    /// From one tap to the next, by axis.
    pub dilations: Ints,
    /// All axes' padding in front, then all axes' padding behind.
    pub pads: Ints,
    /// How padding follows.
    pub auto_pad: AutoPad,
    /// Whether a window that is cut off behind counts.
    pub ceil: bool,
}

/// One spatial axis of a window's walk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Elements of the input.
    pub input: usize,
    /// Window positions.
    pub output: usize,
    /// Taps of the window.
    pub kernel: usize,
    /// From one position to the next.
    pub stride: usize,
    /// From one tap to the next.
    pub dilation: usize,
    /// Padding in front.
    pub before: usize,
    /// Padding behind.
    pub after: usize,
}

/// The spatial axes, outermost first.
pub type Axes = SmallVec<[Axis; 3]>;

impl Window {
    /// From a node's attributes.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn parse(attributes: &Attributes) -> Result<Window, BuildError> {
        let list = |name: &str, least: i64| -> Result<Ints, BuildError> {
            let list = Ints::from_slice(attributes.opt_ints(name)?.unwrap_or(&[]));
            match list.iter().find(|&&v| v < least || v > i64::from(i32::MAX)) {
                None => Ok(list),
                Some(v) => Err(unsupported(name, v, "it lies outside the range of such values")),
            }
        };
        let auto_pad = match attributes.opt_string("auto_pad")? {
            None | Some(b"NOTSET" | b"") => AutoPad::NotSet,
            Some(b"VALID") => AutoPad::Valid,
            Some(b"SAME_UPPER") => AutoPad::SameUpper,
            Some(b"SAME_LOWER") => AutoPad::SameLower,
            Some(other) => {
                return Err(unsupported(
                    "auto_pad",
                    String::from_utf8_lossy(other),
                    "NOTSET, VALID, SAME_UPPER and SAME_LOWER are",
                ));
            }
        };
        Ok(Window {
            kernel: match attributes.opt_ints("kernel_shape")? {
                Some(_) => Some(list("kernel_shape", 1)?),
                None => None,
            },
            strides: list("strides", 1)?,
            dilations: list("dilations", 1)?,
            pads: list("pads", 0)?,
            auto_pad,
            ceil: attributes.int_or("ceil_mode", 0)? != 0,
        })
    }

    /// The kernel's extents from the attribute.
    ///
    /// # Errors
    /// When it is missing.
    pub fn kernel(&self) -> Result<Shape, KernelError> {
        let kernel = self.kernel.as_ref();
        let kernel =
            kernel.ok_or_else(|| KernelError::Other("attribute `kernel_shape` is missing".into()))?;
        Ok(kernel.iter().map(|&k| k as usize).collect())
    }

    /// Element `axis` of an attribute with one element for each of `rank` axes, else 1.
    ///
    /// # Errors
    /// When it has another number of elements.
    pub fn one_of(list: &[i64], axis: usize, rank: usize, what: &'static str) -> Result<usize, KernelError> {
        match list.len() {
            0 => Ok(1),
            len if len == rank => Ok(list[axis] as usize),
            len => Err(KernelError::Range { what, value: len as i64, low: rank as i64, high: rank as i64 }),
        }
    }

    /// Padding in front and behind as the attribute gives it.
    ///
    /// # Errors
    /// When it has another number of elements.
    pub fn pads_of(&self, axis: usize, rank: usize) -> Result<(usize, usize), KernelError> {
        match self.pads.len() {
            0 => Ok((0, 0)),
            len if len == 2 * rank => Ok((self.pads[axis] as usize, self.pads[axis + rank] as usize)),
            len => Err(KernelError::Range {
                what: "the number of pads, two for each axis",
                value: len as i64,
                low: 2 * rank as i64,
                high: 2 * rank as i64,
            }),
        }
    }

    /// The walk over axes of extents `input` with a window of extents `kernel`.
    ///
    /// # Errors
    /// When the attributes are for another number of axes, or the window is greater than the padded input.
    pub fn axes(&self, input: &[usize], kernel: &[usize]) -> Result<Axes, KernelError> {
        let rank = input.len();
        if kernel.len() != rank || rank == 0 || kernel.contains(&0) {
            return Err(KernelError::Shape {
                what: "the window has one extent of at least 1 for each spatial axis",
                shapes: vec![Shape::from_slice(input), Shape::from_slice(kernel)],
            });
        }
        (0..rank)
            .map(|at| {
                let stride = Window::one_of(&self.strides, at, rank, "the number of strides")?;
                let dilation = Window::one_of(&self.dilations, at, rank, "the number of dilations")?;
                let (input, kernel) = (input[at], kernel[at]);
                let reach = (kernel - 1) * dilation + 1;
                let (before, after) = match self.auto_pad {
                    AutoPad::NotSet => self.pads_of(at, rank)?,
                    AutoPad::Valid => (0, 0),
                    same => {
                        let total =
                            ((input.div_ceil(stride).max(1) - 1) * stride + reach).saturating_sub(input);
                        let less = total / 2;
                        if same == AutoPad::SameUpper { (less, total - less) } else { (total - less, less) }
                    }
                };
                let padded = input + before + after;
                let Some(room) = padded.checked_sub(reach) else {
                    return Err(KernelError::Range {
                        what: "the reach of the window over the padded input",
                        value: reach as i64,
                        low: 1,
                        high: padded as i64,
                    });
                };
                let mut output = if self.ceil { room.div_ceil(stride) } else { room / stride } + 1;
                // A window that begins in the padding behind is none.
                if self.ceil && output > 1 && (output - 1) * stride >= input + before {
                    output -= 1;
                }
                Ok(Axis { input, output, kernel, stride, dilation, before, after })
            })
            .collect()
    }
}

impl Axis {
    /// The taps of the window at output `at` that fall on the input: from, to.
    pub fn taps(&self, at: usize) -> (usize, usize) {
        let start = at * self.stride;
        let first = self.before.saturating_sub(start).div_ceil(self.dilation);
        let last = (self.input + self.before).saturating_sub(start).div_ceil(self.dilation);
        (first.min(self.kernel), last.min(self.kernel).max(first.min(self.kernel)))
    }

    /// The taps that fall on the input or its padding.
    pub fn padded_taps(&self, at: usize) -> usize {
        let room = (self.input + self.before + self.after).saturating_sub(at * self.stride);
        room.div_ceil(self.dilation).min(self.kernel)
    }

    /// Where tap `tap` of output `at` falls on the input; for taps that do.
    pub fn place(&self, at: usize, tap: usize) -> usize {
        at * self.stride + tap * self.dilation - self.before
    }
}

/// Elements of the input's, the output's and the kernel's planes.
pub fn planes(axes: &[Axis]) -> (usize, usize, usize) {
    let of = |f: fn(&Axis) -> usize| axes.iter().map(f).product();
    (of(|a| a.input), of(|a| a.output), of(|a| a.kernel))
}

/// The output's extents.
pub fn outputs(axes: &[Axis]) -> impl Iterator<Item = usize> {
    axes.iter().map(|axis| axis.output)
}

/// Calls `f` for each index of a tensor of extents `shape`, in row-major order, with its place in that order.
pub fn for_each_index(shape: &[usize], mut f: impl FnMut(usize, &[usize])) {
    let total: usize = shape.iter().product();
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, shape.len());
    for at in 0..total {
        f(at, &index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// For each output position, in order, calls `f` with its place, its index and the taps that fall on the input.
///
/// # Errors
/// When the call is cancelled: then some positions are left out.
pub fn for_each_window(
    watch: &mut Watch<'_>,
    axes: &[Axis],
    mut f: impl FnMut(usize, &[usize], &[(usize, usize)]),
) -> Result<(), Cancelled> {
    let shape: Shape = outputs(axes).collect();
    let work = axes.iter().map(|axis| axis.kernel).product::<usize>() * 2 + 8;
    let mut on = Ok(());
    let mut taps: SmallVec<[(usize, usize); 3]> = SmallVec::from_elem((0, 0), axes.len());
    for_each_index(&shape, |at, index| {
        for ((taps, axis), &i) in taps.iter_mut().zip(axes).zip(index) {
            *taps = axis.taps(i);
        }
        on = on.and_then(|()| watch.pass(work));
        if on.is_ok() {
            f(at, index, &taps);
        }
    });
    on
}

/// Calls `f` with the input place of each of a window's taps, in order.
pub fn for_each_tap(axes: &[Axis], index: &[usize], taps: &[(usize, usize)], mut f: impl FnMut(usize)) {
    fn go(axes: &[Axis], index: &[usize], taps: &[(usize, usize)], base: usize, f: &mut impl FnMut(usize)) {
        let (axis, (from, to)) = (&axes[0], taps[0]);
        for tap in from..to {
            let at = base * axis.input + axis.place(index[0], tap);
            if axes.len() == 1 { f(at) } else { go(&axes[1..], &index[1..], &taps[1..], at, f) }
        }
    }
    go(axes, index, taps, 0, &mut f);
}

/// Rows `rows` of the output plane (all axes but the last make a row) as tap `offset` of the window sees them in the
/// plane `x`; `pad` where it sees padding.
pub fn unfold<T: Copy>(
    x: &[T],
    axes: &[Axis],
    offset: &[usize],
    rows: std::ops::Range<usize>,
    pad: T,
    to: &mut [T],
) {
    let (last, outer) = axes.split_last().expect("a spatial axis");
    for (row, to) in rows.zip(to.chunks_exact_mut(last.output.max(1))) {
        let (mut rest, mut base, mut inside, mut scale) = (row, 0, true, 1);
        for (axis, &tap) in outer.iter().zip(offset).rev() {
            let place = (rest % axis.output) * axis.stride + tap * axis.dilation;
            rest /= axis.output;
            match place.checked_sub(axis.before).filter(|&p| p < axis.input) {
                Some(place) => base += place * scale,
                None => inside = false,
            }
            scale *= axis.input;
        }
        if !inside {
            to.fill(pad);
            continue;
        }
        let x = &x[base * last.input..(base + 1) * last.input];
        let reach = offset[outer.len()] * last.dilation;
        let first = last.before.saturating_sub(reach).div_ceil(last.stride).min(last.output);
        let end = (last.input + last.before).saturating_sub(reach).div_ceil(last.stride);
        let end = end.clamp(first, last.output);
        to[..first].fill(pad);
        to[end..].fill(pad);
        if first < end {
            let from = x[first * last.stride + reach - last.before..].iter().step_by(last.stride);
            to[first..end].iter_mut().zip(from).for_each(|(t, &v)| *t = v);
        }
    }
}

/// Adds to the plane `out` of extents `axes[..].output` what tap `offset` spreads from each place of the input plane
/// `x`: the reverse of [`unfold`], the axes being those of the walk from out to x.
pub(crate) fn fold<T: crate::product::Ring>(x: &[T], axes: &[FoldAxis], offset: &[usize], out: &mut [T]) {
    let (last, outer) = axes.split_last().expect("a spatial axis");
    for (row, x) in x.chunks_exact(last.blocks.max(1)).enumerate() {
        let (mut rest, mut base, mut inside, mut scale) = (row, 0, true, 1);
        for (axis, &tap) in outer.iter().zip(offset).rev() {
            let place = (rest % axis.blocks * axis.stride + tap * axis.dilation) as isize - axis.before;
            rest /= axis.blocks;
            if place < 0 || place as usize >= axis.extent {
                inside = false;
            } else {
                base += place as usize * scale;
            }
            scale *= axis.extent;
        }
        if !inside {
            continue;
        }
        let out = &mut out[base * last.extent..(base + 1) * last.extent];
        let shift = (offset[outer.len()] * last.dilation) as isize - last.before;
        for (i, &v) in x.iter().enumerate() {
            let place = (i * last.stride) as isize + shift;
            if let Some(o) = usize::try_from(place).ok().and_then(|p| out.get_mut(p)) {
                *o = o.plus(v);
            }
        }
    }
}

/// One axis of windows that are added to places of an output.
#[derive(Clone, Copy, Debug)]
pub struct FoldAxis {
    /// The extent that is added to.
    pub extent: usize,
    /// Window positions.
    pub blocks: usize,
    /// From one position to the next.
    pub stride: usize,
    /// From one tap to the next.
    pub dilation: usize,
    /// Places in front that are cut off; negative ones are added.
    pub before: isize,
}
