//! [`LpPool`](https://onnx.ai/onnx/operators/onnx__LpPool.html): the Lp norm of each window.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::max_pool::split;
use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::window::{Window, for_each_tap, for_each_window, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LpPool",
    versions: (2, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct LpPool {
    window: Window,
    p: i32,
}

/// The attribute `p`.
pub(crate) fn p_of(cx: &BuildCx<'_>) -> Result<i32, BuildError> {
    let p = cx.node.attributes.int_or("p", 2)?;
    i32::try_from(p).ok().filter(|&p| p > 0).ok_or_else(|| unsupported("p", p, "it is at least 1"))
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"])?;
    cx.node.attributes.ints("kernel_shape")?;
    Ok(Box::new(LpPool { window: Window::parse(&cx.node.attributes)?, p: p_of(cx)? }))
}

/// The p-th root of the sum of the p-th powers of magnitudes.
pub(crate) fn norm(values: impl Iterator<Item = f64>, p: i32) -> f64 {
    match p {
        1 => values.map(f64::abs).sum(),
        2 => values.map(|v| v * v).sum::<f64>().sqrt(),
        p => values.map(|v| v.abs().powi(p)).sum::<f64>().powf(1.0 / f64::from(p)),
    }
}

impl Kernel for LpPool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => pool::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn pool<T: Real>(cx: &mut RunCx<'_>, node: &LpPool) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let (count, spatial) = split(x.shape())?;
    let axes = node.window.axes(spatial, &node.window.kernel()?)?;
    let shape: Shape = x.shape()[..2].iter().copied().chain(outputs(&axes)).collect();
    let (input, output, _) = planes(&axes);
    let xs = x.as_slice::<T>()?;
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let mut window = Vec::new();
    let mut watch = cx.cancel().watch();
    for plane in 0..count {
        let x = &xs[plane * input..][..input];
        let to = &mut out.elements_mut::<T>()[plane * output..][..output];
        for_each_window(&mut watch, &axes, |at, index, taps| {
            window.clear();
            for_each_tap(&axes, index, taps, |place| window.push(x[place].widen().to_f64()));
            to[at] = T::narrow(T::Wide::from_f64(norm(window.iter().copied(), node.p)));
        })?;
    }
    cx.set(0, out.freeze());
    Ok(())
}
