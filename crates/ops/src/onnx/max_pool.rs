//! [`MaxPool`](https://onnx.ai/onnx/operators/onnx__MaxPool.html): the greatest element of each window, and where it is.

use half::{bf16, f16};
use heirloom_mem::{DType, Element, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::window::{Window, for_each_tap, for_each_window, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MaxPool",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MaxPool {
    window: Window,
    /// Whether the indices count along columns.
    columns: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"])?;
    let attributes = &cx.node.attributes;
    let columns = attributes.int_or("storage_order", 0)? != 0;
    attributes.ints("kernel_shape")?;
    Ok(Box::new(MaxPool { window: Window::parse(attributes)?, columns }))
}

impl Kernel for MaxPool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64, i8, u8, i16, u16, i32, i64], T => pool::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

/// The batch and channels together, and the spatial axes.
pub(crate) fn split(shape: &[usize]) -> Result<(usize, &[usize]), KernelError> {
    match shape {
        &[batch, channels, ref spatial @ ..] if !spatial.is_empty() => Ok((batch * channels, spatial)),
        other => Err(KernelError::Shape {
            what: "the input is [batch, channels, spatial…]",
            shapes: vec![Shape::from_slice(other)],
        }),
    }
}

fn pool<T: Element + PartialOrd>(cx: &mut RunCx<'_>, node: &MaxPool) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let (count, spatial) = split(x.shape())?;
    let axes = node.window.axes(spatial, &node.window.kernel()?)?;
    let shape: Shape = x.shape()[..2].iter().copied().chain(outputs(&axes)).collect();
    let (input, output, _) = planes(&axes);
    let xs = x.as_slice::<T>()?;
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let mut indices = match cx.wants(1) {
        true => Some(cx.alloc(DType::Int64, &shape)?),
        false => None,
    };
    let mut watch = cx.cancel().watch();
    for plane in 0..count {
        let x = &xs[plane * input..][..input];
        let to = &mut out.elements_mut::<T>()[plane * output..][..output];
        let mut places = indices.as_mut().map(|i| &mut i.elements_mut::<i64>()[plane * output..][..output]);
        for_each_window(&mut watch, &axes, |at, index, taps| {
            let mut best: Option<usize> = None;
            // NaN is greater than all numbers.
            #[allow(clippy::eq_op)]
            for_each_tap(&axes, index, taps, |place| {
                if best.is_none_or(|b| x[place] > x[b] || (x[place] != x[place] && x[b] == x[b])) {
                    best = Some(place);
                }
            });
            let best = best.unwrap_or(0);
            to[at] = x.get(best).copied().unwrap_or_default();
            if let Some(places) = &mut places {
                let place = if node.columns { column_major(best, spatial) } else { best };
                places[at] = (plane * input + place) as i64;
            }
        })?;
    }
    cx.set(0, out.freeze());
    if let Some(indices) = indices {
        cx.set(1, indices.freeze());
    }
    Ok(())
}

/// A place of a plane, counted with the first axis innermost.
fn column_major(mut place: usize, spatial: &[usize]) -> usize {
    let (mut result, mut scale) = (0, spatial.iter().product::<usize>());
    for &extent in spatial.iter().rev() {
        scale /= extent;
        result += place % extent * scale;
        place /= extent;
    }
    result
}
