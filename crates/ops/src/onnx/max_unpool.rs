//! [`MaxUnpool`](https://onnx.ai/onnx/operators/onnx__MaxUnpool.html): elements put back where `MaxPool` found them,
//! zeros elsewhere.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::max_pool::split;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{extent, opt_list};
use crate::real::Real;
use crate::reals::misfit;
use crate::window::Window;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MaxUnpool",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MaxUnpool {
    window: Window,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["kernel_shape", "pads", "strides"])?;
    cx.node.attributes.ints("kernel_shape")?;
    Ok(Box::new(MaxUnpool { window: Window::parse(&cx.node.attributes)? }))
}

impl Kernel for MaxUnpool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => run::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn run<T: Real>(cx: &mut RunCx<'_>, node: &MaxUnpool) -> Result<(), KernelError> {
    let (x, places) = (cx.dense(0)?, cx.dense(1)?);
    let (_, spatial) = split(x.shape())?;
    let kernel = node.window.kernel()?;
    let rank = spatial.len();
    if kernel.len() != rank || places.shape() != x.shape() {
        return Err(misfit(
            "the indices are as many as the elements, the window has an extent for each axis",
            &[x.shape(), places.shape()],
        ));
    }
    let mut inferred: Shape = x.shape()[..2].iter().copied().collect();
    for at in 0..rank {
        let stride = Window::one_of(&node.window.strides, at, rank, "the number of strides")?;
        let (before, after) = node.window.pads_of(at, rank)?;
        inferred.push(((spatial[at].max(1) - 1) * stride + kernel[at]).saturating_sub(before + after));
    }
    let shape: Shape = match opt_list(cx, 2)? {
        Some(list) => list.iter().map(|&d| extent("an extent", d)).collect::<Result<_, _>>()?,
        None => inferred.clone(),
    };
    if shape.len() != inferred.len() || shape[..2] != inferred[..2] {
        return Err(misfit("the output has the input's batch and channels", &[x.shape(), &shape]));
    }
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let to = out.elements_mut::<T>();
    to.fill(T::default());
    let mut watch = cx.cancel().watch();
    let total: usize = inferred.iter().product();
    for (&v, &place) in x.as_slice::<T>()?.iter().zip(places.as_slice::<i64>()?) {
        watch.pass(1)?;
        let range = || KernelError::Range { what: "an index", value: place, low: 0, high: total as i64 - 1 };
        let mut rest = usize::try_from(place).ok().filter(|&p| p < total).ok_or_else(range)?;
        // Indices count in the extents that the pool had, which the output may exceed.
        let (mut at, mut scale) = (0, 1);
        for (&own, &extent) in inferred.iter().zip(&shape).rev() {
            at += rest % own * scale;
            rest /= own;
            scale *= extent;
        }
        *to.get_mut(at).ok_or_else(range)? = v;
    }
    cx.set(0, out.freeze());
    Ok(())
}
