//! [`AveragePool`](https://onnx.ai/onnx/operators/onnx__AveragePool.html): the mean of each window.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::max_pool::split;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::window::{Window, for_each_tap, for_each_window, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "AveragePool",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct AveragePool {
    window: Window,
    include_pad: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &["auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"],
    )?;
    let attributes = &cx.node.attributes;
    attributes.ints("kernel_shape")?;
    let include_pad = attributes.int_or("count_include_pad", 0)? != 0;
    Ok(Box::new(AveragePool { window: Window::parse(attributes)?, include_pad }))
}

impl Kernel for AveragePool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => pool::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn pool<T: Real>(cx: &mut RunCx<'_>, node: &AveragePool) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let (count, spatial) = split(x.shape())?;
    let axes = node.window.axes(spatial, &node.window.kernel()?)?;
    let shape: Shape = x.shape()[..2].iter().copied().chain(outputs(&axes)).collect();
    let (input, output, _) = planes(&axes);
    let xs = x.as_slice::<T>()?;
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let mut watch = cx.cancel().watch();
    for plane in 0..count {
        let x = &xs[plane * input..][..input];
        let to = &mut out.elements_mut::<T>()[plane * output..][..output];
        for_each_window(&mut watch, &axes, |at, index, taps| {
            let mut sum = T::Wide::default();
            for_each_tap(&axes, index, taps, |place| sum += x[place].widen());
            let count: usize = match node.include_pad {
                true => axes.iter().zip(index).map(|(axis, &i)| axis.padded_taps(i)).product(),
                false => taps.iter().map(|(from, to)| to - from).product(),
            };
            to[at] = T::narrow(sum / T::Wide::from_f64(count as f64));
        })?;
    }
    cx.set(0, out.freeze());
    Ok(())
}
