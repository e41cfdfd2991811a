//! [`Conv`](https://onnx.ai/onnx/operators/onnx__Conv.html): the sums of products of a weight with the windows of an
//! input that it slides over, plus a bias for each output channel.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::convolution::Convolution;
use crate::elementwise::{common_type, wrong_type};
use crate::real::Real;
use crate::window::{Window, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Conv",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| {
        only(cx, &ATTRIBUTES)?;
        Ok(Box::new(Conv::new(cx)?))
    },
};

/// What convolutions have in common.
pub(crate) const ATTRIBUTES: [&str; 6] =
    ["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

struct Conv {
    window: Window,
    groups: usize,
}

/// The number of groups.
pub(crate) fn groups(cx: &BuildCx<'_>) -> Result<usize, BuildError> {
    let groups = cx.node.attributes.int_or("group", 1)?;
    usize::try_from(groups)
        .ok()
        .filter(|&g| g > 0)
        .ok_or_else(|| unsupported("group", groups, "there is at least one group"))
}

impl Conv {
    fn new(cx: &BuildCx<'_>) -> Result<Conv, BuildError> {
        Ok(Conv { window: Window::parse(&cx.node.attributes)?, groups: groups(cx)? })
    }
}

impl Kernel for Conv {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(common_type(cx, 2)?, [f32, f16, bf16, f64], T => conv::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn conv<T: Real>(cx: &mut RunCx<'_>, node: &Conv) -> Result<(), KernelError> {
    let (x, w) = (cx.dense(0)?, cx.dense(1)?);
    let shape = Convolution::new(x.shape(), w.shape(), node.groups, &node.window)?;
    let wide = |v: &[T]| -> Vec<T::Wide> { v.iter().map(|v| v.widen()).collect() };
    let (xs, ws) = (wide(x.as_slice()?), wide(w.as_slice()?));
    let mut out = cx.alloc(T::DTYPE, &shape.shape())?;
    let mut sums = vec![T::Wide::default(); out.elements_mut::<T>().len()];
    shape.run(&xs, &ws, &mut sums, cx.cancel())?;
    let (_, plane, _) = planes(&shape.axes);
    let maps = shape.groups * shape.maps;
    let bias = bias::<T>(cx, 2, maps)?;
    let to = out.elements_mut::<T>().chunks_exact_mut(plane.max(1)).zip(sums.chunks_exact(plane.max(1)));
    for (at, (to, sums)) in to.enumerate() {
        match bias.get(at % maps.max(1)) {
            Some(&b) => to.iter_mut().zip(sums).for_each(|(t, &s)| *t = T::narrow(s + b)),
            None => to.iter_mut().zip(sums).for_each(|(t, &s)| *t = T::narrow(s)),
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// The bias of each output channel; empty where there is none.
pub(crate) fn bias<T: Real>(cx: &RunCx<'_>, index: usize, maps: usize) -> Result<Vec<T::Wide>, KernelError> {
    if cx.opt_tensor(index)?.is_none() {
        return Ok(Vec::new());
    }
    let bias = cx.dense(index)?;
    if bias.shape() != [maps] {
        return Err(KernelError::Shape {
            what: "the bias has one element for each output channel",
            shapes: vec![heirloom_mem::Shape::from_slice(bias.shape()), [maps].into_iter().collect()],
        });
    }
    Ok(bias.as_slice::<T>()?.iter().map(|v| v.widen()).collect())
}
