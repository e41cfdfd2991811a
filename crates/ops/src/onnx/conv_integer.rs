//! [`ConvInteger`](https://onnx.ai/onnx/operators/onnx__ConvInteger.html): the convolution of 8-bit codes less their
//! zero points, in INT32.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::conv::{ATTRIBUTES, groups};
use crate::attributes::only;
use crate::convolution::Convolution;
use crate::quantized::{integers, zero_points};
use crate::reals::misfit;
use crate::window::Window;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ConvInteger",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ConvInteger {
    window: Window,
    groups: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &ATTRIBUTES)?;
    Ok(Box::new(ConvInteger { window: Window::parse(&cx.node.attributes)?, groups: groups(cx)? }))
}

impl Kernel for ConvInteger {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, sums) = sums(cx, [0, 1], [2, 3], &self.window, self.groups)?;
        let mut out = cx.alloc(DType::Int32, &shape.shape())?;
        out.elements_mut::<i32>().iter_mut().zip(sums).for_each(|(o, s)| *o = s);
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// The sums of products of the codes of two inputs less their zero points.
pub(crate) fn sums(
    cx: &RunCx<'_>,
    inputs: [usize; 2],
    zeros: [usize; 2],
    window: &Window,
    groups: usize,
) -> Result<(Convolution, Vec<i32>), KernelError> {
    let (x, w) = (cx.dense(inputs[0])?, cx.dense(inputs[1])?);
    let shape = Convolution::new(x.shape(), w.shape(), groups, window)?;
    let (mut xs, mut ws) = (integers(cx, inputs[0], &x)?, integers(cx, inputs[1], &w)?);
    let (x_zero, w_zeros) = (zero_points(cx, zeros[0])?, zero_points(cx, zeros[1])?);
    let maps = w.shape()[0];
    if x_zero.len() != 1 || !(w_zeros.len() == 1 || w_zeros.len() == maps) {
        return Err(misfit(
            "there is one zero point of the input, and one or one for each map of the weight",
            &[w.shape()],
        ));
    }
    xs.iter_mut().for_each(|v| *v -= x_zero[0]);
    let per_map = ws.len() / maps.max(1);
    for (at, v) in ws.iter_mut().enumerate() {
        *v -= if w_zeros.len() == 1 { w_zeros[0] } else { w_zeros[at / per_map] };
    }
    let mut sums = vec![0; shape.shape().iter().product()];
    shape.run(&xs, &ws, &mut sums, cx.cancel())?;
    Ok((shape, sums))
}
