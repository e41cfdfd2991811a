//! [`Pad`](https://onnx.ai/onnx/operators/onnx__Pad.html): elements put before and behind each axis: a constant, or the edge,
//! the reflection or the repetition of those that are there. Negative numbers take elements away.

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Watch, normalize_axis};
use heirloom_types::Value;

use crate::attributes::{only, unsupported};
use crate::by_type::by_number;
use crate::cells::{Moves, moved_with, put};
use crate::elementwise::wrong_type;
use crate::integers::{self, Ints};
use crate::movement::shape_of;
use crate::numbers::Number;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Pad",
    versions: (2, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Constant,
    Edge,
    Reflect,
    Wrap,
}

struct Pad {
    mode: Mode,
    /// Before version 11 the pads and the constant are attributes.
    pads: Option<(Ints, f32)>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 11 { &["mode", "pads", "value"] } else { &["mode"] })?;
    let attributes = &cx.node.attributes;
    let mode = match attributes.opt_string("mode")? {
        None | Some(b"constant") => Mode::Constant,
        Some(b"edge") => Mode::Edge,
        Some(b"reflect") => Mode::Reflect,
        Some(b"wrap") if cx.opset >= 19 => Mode::Wrap,
        Some(other) => {
            let known = "constant, edge and reflect are, and from version 19 on wrap";
            return Err(unsupported("mode", String::from_utf8_lossy(other), known));
        }
    };
    let pads = match cx.opset {
        ..11 => Some((Ints::from_slice(attributes.ints("pads")?), attributes.float_or("value", 0.0)?)),
        _ => None,
    };
    Ok(Box::new(Pad { mode, pads }))
}

impl Kernel for Pad {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let pads = self.pads(cx, from.len())?;
        let mut shape = Shape::new();
        let mut axes = Vec::with_capacity(from.len());
        for (axis, &extent) in from.iter().enumerate() {
            let (before, behind) = (pads[axis], pads[from.len() + axis]);
            let places = places(self.mode, extent, before, behind)?;
            shape.push(places.len());
            axes.push(places);
        }
        let value = match &self.pads {
            Some((_, value)) => constant(cx, *value)?,
            None => None,
        };
        let has_input = self.pads.is_none() && cx.value(2).is_some();
        let inputs: &[usize] = if has_input { &[0, 2] } else { &[0] };
        let value = moved_with(cx, inputs, value.as_slice(), &shape, &Layout { from, axes })?;
        cx.set(0, value);
        Ok(())
    }
}

impl Pad {
    /// The pads of all axes: those before, then those behind.
    fn pads(&self, cx: &RunCx<'_>, rank: usize) -> Result<Ints, KernelError> {
        let list = match &self.pads {
            Some((pads, _)) => pads.clone(),
            None => integers::list(cx, 1)?,
        };
        let axes = if self.pads.is_some() { None } else { integers::opt_list(cx, 3)? };
        let axes: Vec<usize> = match axes {
            None => (0..rank).collect(),
            Some(axes) => axes.iter().map(|&axis| normalize_axis(axis, rank)).collect::<Result<_, _>>()?,
        };
        if list.len() != 2 * axes.len() {
            return Err(KernelError::Other(format!("{} pads for {} axes", list.len(), axes.len())));
        }
        let mut pads = Ints::from_elem(0, 2 * rank);
        for (at, &axis) in axes.iter().enumerate() {
            pads[axis] = list[at];
            pads[rank + axis] = list[axes.len() + at];
        }
        Ok(pads)
    }
}

/// Where each element of a padded axis comes from; `None` is the constant.
fn places(mode: Mode, extent: usize, before: i64, behind: i64) -> Result<Vec<Option<usize>>, KernelError> {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    let padded = n.checked_add(before).and_then(|sum| sum.checked_add(behind));
    let count = padded.ok_or_else(|| KernelError::Other("pads overflow".into()))?;
    let count = integers::extent("a padded extent", count)?;
    // Elements that negative pads take away are not there to be repeated.
    let (low, high) = ((-before).max(0).min(n), (n + behind.min(0)).max(0));
    let kept = high - low;
    if kept <= 0 && count > 0 && mode != Mode::Constant {
        return Err(KernelError::Other("an axis without elements has none to repeat".into()));
    }
    let place = |at: i64| {
        let at = at - before;
        if (low..high).contains(&at) {
            return usize::try_from(at).ok();
        }
        let inner = at - low;
        let inner = match mode {
            Mode::Constant => return None,
            Mode::Edge => inner.clamp(0, kept - 1),
            Mode::Wrap => inner.rem_euclid(kept),
            Mode::Reflect if kept == 1 => 0,
            Mode::Reflect => {
                let period = inner.rem_euclid(2 * (kept - 1));
                period.min(2 * (kept - 1) - period)
            }
        };
        usize::try_from(low + inner).ok()
    };
    Ok((0..i64::try_from(count).unwrap_or(i64::MAX)).map(place).collect())
}

/// The attribute `value` as a tensor of the input's type; `None` for strings and for 0, which elements are anyway.
fn constant(cx: &RunCx<'_>, value: f32) -> Result<Option<Tensor>, KernelError> {
    if value == 0.0 || !matches!(cx.value(0), Some(Value::Tensor(_))) {
        return Ok(None);
    }
    by_number!(cx.tensor(0)?.dtype(), T => Ok(Some(Tensor::scalar(<T as Number>::from_f32(value)))),
        _ => Err(wrong_type(cx, 0, "numbers")))
}

struct Layout {
    from: Shape,
    axes: Vec<Vec<Option<usize>>>,
}

impl Moves for Layout {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        let from = inputs[0];
        if let Some(values) = inputs.get(1) {
            let [value] = values else {
                return Err(KernelError::Other(format!(
                    "the constant has one element, not {}",
                    values.len()
                )));
            };
            for out in out.chunks_mut(Watch::PIECE) {
                watch.pass(out.len())?;
                out.fill(value.clone());
            }
        }
        let Some((last, outer)) = self.axes.split_last() else {
            put(out, from);
            return Ok(());
        };
        let runs = runs(last);
        let width = self.from.last().copied().unwrap_or(1);
        let mut counter = Shape::from_elem(0, outer.len());
        for out in out.chunks_exact_mut(last.len().max(1)) {
            watch.pass(last.len())?;
            let row =
                outer.iter().zip(&counter).zip(&self.from).try_fold(0, |row, ((places, &at), &extent)| {
                    places[at].map(|place| row * extent + place)
                });
            if let Some(row) = row {
                let from = &from[row * width..(row + 1) * width];
                for &(to, place, len) in &runs {
                    put(&mut out[to..to + len], &from[place..place + len]);
                }
            }
            for at in (0..outer.len()).rev() {
                counter[at] += 1;
                if counter[at] < outer[at].len() {
                    break;
                }
                counter[at] = 0;
            }
        }
        Ok(())
    }
}

/// Stretches of places that rise one by one: where each begins, its first place and its length.
fn runs(places: &[Option<usize>]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let Some(place) = *place else { continue };
        match runs.last_mut() {
            Some((to, first, len)) if *to + *len == at && *first + *len == place => *len += 1,
            _ => runs.push((at, place, 1)),
        }
    }
    runs
}
