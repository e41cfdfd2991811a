//! [`DequantizeLinear`](https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html): `(x - zero_point) * scale`.

use half::{bf16, f16};
use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Cancelled, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::SmallFloat;

use super::quantize_linear::block_and_type;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::quantized::{Granularity, codes, floats, integers};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DequantizeLinear",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// The same operator before ai.onnx had it for all types.
pub(crate) const MICROSOFT: KernelSpec = KernelSpec { domain: "com.microsoft", versions: (1, 1), ..SPEC };

struct DequantizeLinear {
    axis: i64,
    block: usize,
    to: Option<DType>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let microsoft = cx.node.domain == "com.microsoft";
    only(
        cx,
        match cx.opset {
            _ if microsoft => &["axis", "block_size"],
            ..13 => &[],
            13..21 => &["axis"],
            21..23 => &["axis", "block_size"],
            _ => &["axis", "block_size", "output_dtype"],
        },
    )?;
    let (block, to) = block_and_type(cx, "output_dtype")?;
    Ok(Box::new(DequantizeLinear { axis: cx.node.attributes.int_or("axis", 1)?, block, to }))
}

impl Kernel for DequantizeLinear {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let scale = cx.tensor(1)?;
        let (scale_type, scale_shape) = (scale.dtype(), Shape::from_slice(scale.shape()));
        let scales = floats(cx, 1)?;
        let which = Granularity::new(x.shape(), &scale_shape, self.axis, self.block)?;
        let table = SmallFloat::of(x.dtype());
        let mut watch = cx.cancel().watch();
        let values: Vec<f32> = match table {
            Some(float) => {
                let values = codes(&x).into_iter().map(|code| float.decode(code)).enumerate();
                values
                    .map(|(at, v)| watch.pass(1).map(|()| v * scales[which.of(at)]))
                    .collect::<Result<_, Cancelled>>()?
            }
            None => {
                let zeros = match cx.opt_tensor(2)? {
                    Some(_) => integers(cx, 2, &cx.dense(2)?)?,
                    None => vec![0; scales.len()],
                };
                if zeros.len() != scales.len() {
                    let shapes = vec![scale_shape, Shape::from_elem(zeros.len(), 1)];
                    return Err(KernelError::Shape { what: "scales and zero points are as many", shapes });
                }
                let difference = |(at, v): (usize, i32)| {
                    let own = which.of(at);
                    watch.pass(1).map(|()| v.wrapping_sub(zeros[own]) as f32 * scales[own])
                };
                let codes = integers(cx, 0, &x)?.into_iter().enumerate();
                codes.map(difference).collect::<Result<_, Cancelled>>()?
            }
        };
        let to = self.to.unwrap_or(scale_type);
        let mut out = cx.alloc(to, x.shape())?;
        by_type!(to, [f32, f16, bf16], T => {
            out.elements_mut::<T>().iter_mut().zip(values).for_each(|(o, v)| *o = T::from_f32(v));
        }, _ => return Err(KernelError::Other(format!("nothing is dequantized to {to}"))));
        cx.set(0, out.freeze());
        Ok(())
    }
}
