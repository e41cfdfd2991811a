//! [`QLinearConv`](https://onnx.ai/onnx/operators/onnx__QLinearConv.html): a convolution of quantized tensors with a
//! quantized result.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::Overflow;

use super::conv::{ATTRIBUTES, groups};
use super::conv_integer::sums;
use crate::attributes::only;
use crate::elementwise::wrong_type;
use crate::quantized::{Target, floats, integers, write_codes};
use crate::reals::misfit;
use crate::window::{Window, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "QLinearConv",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QLinearConv {
    window: Window,
    groups: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &ATTRIBUTES)?;
    Ok(Box::new(QLinearConv { window: Window::parse(&cx.node.attributes)?, groups: groups(cx)? }))
}

impl Kernel for QLinearConv {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, sums) = sums(cx, [0, 3], [2, 5], &self.window, self.groups)?;
        let maps = shape.groups * shape.maps;
        let (_, plane, _) = planes(&shape.axes);
        let (x_scale, w_scales, y_scale) = (floats(cx, 1)?, floats(cx, 4)?, floats(cx, 6)?);
        let zero = cx.dense(7)?;
        let zeros = integers(cx, 7, &zero)?;
        let target = Target::of(zero.dtype()).ok_or_else(|| wrong_type(cx, 7, "UINT8 or INT8"))?;
        let bias = match cx.opt_tensor(8)? {
            Some(_) => integers(cx, 8, &cx.dense(8)?)?,
            None => vec![0; maps],
        };
        let fits = x_scale.len() == 1 && y_scale.len() == 1 && zeros.len() == 1 && bias.len() == maps;
        if !fits || !(w_scales.len() == 1 || w_scales.len() == maps) {
            return Err(misfit(
                "there is one scale and zero point, or one for each map of the weight",
                &[&shape.shape()],
            ));
        }
        let codes: Vec<i32> = sums
            .iter()
            .enumerate()
            .map(|(at, &sum)| {
                let map = at / plane % maps;
                let w_scale = w_scales[if w_scales.len() == 1 { 0 } else { map }];
                let factor = x_scale[0] * w_scale / y_scale[0];
                target.code(sum.wrapping_add(bias[map]) as f32 * factor, zeros[0], Overflow::Saturate)
            })
            .collect();
        let mut out = cx.alloc(zero.dtype(), &shape.shape())?;
        write_codes(&mut out, &codes);
        cx.set(0, out.freeze());
        Ok(())
    }
}
