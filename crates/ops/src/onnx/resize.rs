//! [`Resize`](https://onnx.ai/onnx/operators/onnx__Resize.html): more or fewer elements along axes, interpolated.

use half::{bf16, f16};
use heirloom_mem::{Element, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use smallvec::SmallVec;

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{self, Ints};
use crate::interpolation::{Coordinates, Interpolation, Mode, Nearest, Scaled, Taps};
use crate::numbers::Number;
use crate::reals::reals;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Resize",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

pub(crate) struct Resize {
    pub(crate) how: Interpolation,
    pub(crate) axes: Option<Ints>,
    pub(crate) policy: Policy,
    /// The inputs that hold the region, the scales and the sizes.
    pub(crate) places: Places,
    /// The scales, where they are an attribute.
    pub(crate) scales: Option<Vec<f64>>,
}

pub(crate) struct Places {
    pub(crate) region: Option<usize>,
    pub(crate) scales: Option<usize>,
    pub(crate) sizes: Option<usize>,
}

/// What becomes of the ratio of the axes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Policy {
    Stretch,
    NotLarger,
    NotSmaller,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let common = [
        "coordinate_transformation_mode",
        "cubic_coeff_a",
        "exclude_outside",
        "extrapolation_value",
        "mode",
        "nearest_mode",
    ];
    let newer = ["antialias", "axes", "keep_aspect_ratio_policy"];
    match cx.opset {
        ..11 => only(cx, &["mode"])?,
        11..18 => only(cx, &common)?,
        _ => only(cx, &[&common[..], &newer].concat())?,
    }
    let attributes = &cx.node.attributes;
    let mut how = Interpolation::parse(attributes)?;
    let mut places = Places { region: Some(1), scales: Some(2), sizes: Some(3) };
    if cx.opset < 11 {
        how.coordinates = Coordinates::Asymmetric;
        how.mode = if let Mode::Nearest(_) = how.mode { Mode::Nearest(Nearest::Floor) } else { how.mode };
        places = Places { region: None, scales: Some(1), sizes: None };
    }
    let policy = match attributes.opt_string("keep_aspect_ratio_policy")? {
        None | Some(b"stretch") => Policy::Stretch,
        Some(b"not_larger") => Policy::NotLarger,
        Some(b"not_smaller") => Policy::NotSmaller,
        Some(other) => {
            let value = String::from_utf8_lossy(other);
            return Err(unsupported("keep_aspect_ratio_policy", value, "there is no such policy"));
        }
    };
    let axes = attributes.opt_ints("axes")?.map(Ints::from_slice);
    Ok(Box::new(Resize { how, axes, policy, places, scales: None }))
}

impl Resize {
    /// How each axis is resized.
    pub(crate) fn plan(&self, cx: &RunCx<'_>) -> Result<SmallVec<[Scaled; 5]>, KernelError> {
        let shape = cx.tensor(0)?.shape();
        let rank = shape.len();
        let mut plan: SmallVec<[Scaled; 5]> =
            shape.iter().map(|&d| Scaled { input: d, output: d, scale: 1.0, region: (0.0, 1.0) }).collect();
        let axes: SmallVec<[usize; 6]> = match &self.axes {
            Some(list) => {
                integers::axes(list, rank)?;
                list.iter().map(|&a| heirloom_runtime::normalize_axis(a, rank)).collect::<Result<_, _>>()?
            }
            None => (0..rank).collect(),
        };
        let given = |place: Option<usize>| -> Result<Option<usize>, KernelError> {
            let Some(index) = place else { return Ok(None) };
            Ok(cx.opt_tensor(index)?.filter(|t| !t.is_empty()).map(|_| index))
        };
        let misfit = |len: usize| KernelError::Shape {
            what: "there is a scale or size for each axis to resize",
            shapes: vec![Shape::from_slice(shape), Shape::from_elem(len, 1)],
        };
        if let (Some(index), Coordinates::TfCropAndResize) =
            (given(self.places.region)?, self.how.coordinates)
        {
            let region = reals(cx, index, &cx.dense(index)?)?;
            if region.len() != 2 * axes.len() {
                return Err(misfit(region.len()));
            }
            for (i, &axis) in axes.iter().enumerate() {
                plan[axis].region = (region[i], region[i + axes.len()]);
            }
        }
        let scales = match (&self.scales, given(self.places.scales)?) {
            (Some(scales), _) => Some(scales.clone()),
            (None, Some(index)) => Some(reals(cx, index, &cx.dense(index)?)?),
            (None, None) => None,
        };
        if let Some(scales) = scales {
            if scales.len() != axes.len() {
                return Err(misfit(scales.len()));
            }
            for (&axis, scale) in axes.iter().zip(scales) {
                if !(scale > 0.0 && scale < 1e9) {
                    return Err(KernelError::Other(format!("a scale of {scale}: scales are positive")));
                }
                let (start, end) = plan[axis].region;
                let extent = plan[axis].input as f64 * scale * (end - start);
                plan[axis] =
                    Scaled { output: (extent + 1e-9).floor().max(0.0) as usize, scale, ..plan[axis] };
            }
            return Ok(plan);
        }
        let sizes = match given(self.places.sizes)? {
            Some(index) => integers::list(cx, index)?,
            None => return Err(KernelError::Other("neither scales nor sizes are given".into())),
        };
        if sizes.len() != axes.len() {
            return Err(misfit(sizes.len()));
        }
        let mut wanted = Vec::with_capacity(sizes.len());
        for (&axis, &size) in axes.iter().zip(&sizes) {
            let size = integers::extent("a size", size)?;
            wanted.push((axis, size, size as f64 / plan[axis].input.max(1) as f64));
        }
        let ratios = wanted.iter().map(|w| w.2);
        let one = match self.policy {
            Policy::Stretch => None,
            Policy::NotLarger => Some(ratios.fold(f64::INFINITY, f64::min)),
            Policy::NotSmaller => Some(ratios.fold(0.0, f64::max)),
        };
        for (axis, size, ratio) in wanted {
            let input = plan[axis].input as f64;
            let (output, scale) = match one {
                Some(scale) => ((scale * input + 0.5).floor().max(1.0) as usize, scale),
                None => (size, ratio),
            };
            plan[axis] = Scaled { output, scale, ..plan[axis] };
        }
        Ok(plan)
    }
}

impl Kernel for Resize {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let plan = self.plan(cx)?;
        by_type!(cx.tensor(0)?.dtype(), [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8],
            T => resize::<T>(cx, &plan, &self.how),
            _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn resize<T: Element + Number>(
    cx: &mut RunCx<'_>,
    plan: &[Scaled],
    how: &Interpolation,
) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let from = x.as_slice::<T>()?;
    let shape: Shape = plan.iter().map(|axis| axis.output).collect();
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    if x.is_empty() && out.shape().iter().all(|&d| d > 0) {
        return Err(KernelError::Shape {
            what: "nothing cannot be resized to something",
            shapes: vec![shape],
        });
    }
    let moved: Vec<(usize, Vec<Taps>)> = plan
        .iter()
        .enumerate()
        .filter(|(_, axis)| axis.input != axis.output || axis.scale != 1.0 || axis.region != (0.0, 1.0))
        .map(|(at, axis)| (at, axis.taps(how)))
        .collect();
    if let Mode::Nearest(_) = how.mode {
        let strides = crate::movement::dense_strides(x.shape());
        // Where each place of each axis comes from, and nowhere for what is extrapolated.
        let mut tables: Vec<Vec<Option<usize>>> = plan
            .iter()
            .zip(&strides)
            .map(|(axis, &stride)| (0..axis.output).map(|at| Some(at * stride as usize)).collect())
            .collect();
        for (axis, taps) in &moved {
            let stride = strides[*axis] as usize;
            tables[*axis] = taps.iter().map(|taps| taps.first().map(|t| t.0 * stride)).collect();
        }
        let extrapolated = T::from_f64(how.extrapolation);
        let Some(last) = tables.pop() else {
            out.elements_mut::<T>().iter_mut().zip(from).for_each(|(t, &v)| *t = v);
            cx.set(0, out.freeze());
            return Ok(());
        };
        let outside = last.iter().any(Option::is_none);
        let inside: Vec<usize> = last.iter().map(|place| place.unwrap_or(0)).collect();
        let to = out.elements_mut::<T>();
        let (mut watch, mut on) = (cx.cancel().watch(), Ok(()));
        crate::window::for_each_index(&shape[..tables.len()], |row, index| {
            on = on.and_then(|()| watch.pass(inside.len()));
            if on.is_err() {
                return;
            }
            let mut places = index.iter().zip(&tables).map(|(&i, table)| table[i]);
            let base = places.try_fold(0, |sum, own| own.map(|own| sum + own));
            let to = &mut to[row * inside.len()..][..inside.len()];
            let Some(base) = base else { return to.fill(extrapolated) };
            let from = &from[base..];
            to.iter_mut().zip(&inside).for_each(|(to, &place)| *to = from[place]);
            if outside {
                let none = to.iter_mut().zip(&last).filter(|(_, place)| place.is_none());
                none.for_each(|(to, _)| *to = extrapolated);
            }
        });
        on?;
        cx.set(0, out.freeze());
        return Ok(());
    }
    // One axis after the other.
    cx.cancel().check()?;
    let mut values: Vec<f64> = from.iter().map(|v| v.to_f64()).collect();
    let mut extents = Shape::from_slice(x.shape());
    for (axis, taps) in &moved {
        let mut watch = cx.cancel().watch();
        let inner: usize = extents[axis + 1..].iter().product();
        let outer: usize = extents[..*axis].iter().product();
        let mut next = vec![0.0; outer * taps.len() * inner];
        for o in 0..outer {
            let from = &values[o * extents[*axis] * inner..][..extents[*axis] * inner];
            for (at, taps) in taps.iter().enumerate() {
                watch.pass(inner * taps.len())?;
                let to = &mut next[(o * shape[*axis] + at) * inner..][..inner];
                if taps.is_empty() {
                    // Stays NaN through the other axes, and is replaced at the end.
                    to.fill(f64::NAN);
                }
                for &(place, weight) in taps {
                    let row = &from[place * inner..][..inner];
                    to.iter_mut().zip(row).for_each(|(t, v)| *t += weight * v);
                }
            }
        }
        values = next;
        extents[*axis] = shape[*axis];
    }
    let outside = moved.iter().any(|(_, taps)| taps.iter().any(Taps::is_empty));
    let mut watch = cx.cancel().watch();
    for (to, v) in out.elements_mut::<T>().iter_mut().zip(values) {
        watch.pass(1)?;
        let v = if outside && v.is_nan() { how.extrapolation } else { v };
        *to = T::from_f64(v);
    }
    cx.set(0, out.freeze());
    Ok(())
}
