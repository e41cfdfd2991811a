//! [`QuantizeLinear`](https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html): the code nearest to
//! `x / scale + zero_point`, ties to even.

use half::{bf16, f16};
use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Cancelled, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::Overflow;

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::quantized::{Granularity, Target, floats, integers, write_codes};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "QuantizeLinear",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QuantizeLinear {
    axis: i64,
    block: usize,
    overflow: Overflow,
    to: Option<DType>,
    /// The type that the quotient is rounded to before it is quantized.
    precision: Option<DType>,
}

/// The attributes `block_size` and one that names a type.
pub(crate) fn block_and_type(cx: &BuildCx<'_>, name: &str) -> Result<(usize, Option<DType>), BuildError> {
    let block = cx.node.attributes.int_or("block_size", 0)?;
    let block = usize::try_from(block).map_err(|_| unsupported("block_size", block, "it is not negative"))?;
    Ok((block, type_attribute(cx, name)?))
}

/// An attribute that names a type; 0 is none.
pub(crate) fn type_attribute(cx: &BuildCx<'_>, name: &str) -> Result<Option<DType>, BuildError> {
    match cx.node.attributes.int_or(name, 0)? {
        0 => Ok(None),
        number => {
            let dtype = i32::try_from(number).ok().and_then(DType::from_onnx);
            dtype.map(Some).ok_or_else(|| unsupported(name, number, "there is no such type"))
        }
    }
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..13 => &[],
            13..19 => &["axis"],
            19..21 => &["axis", "saturate"],
            21..23 => &["axis", "block_size", "output_dtype", "saturate"],
            _ => &["axis", "block_size", "output_dtype", "precision", "saturate"],
        },
    )?;
    let attributes = &cx.node.attributes;
    let (block, to) = block_and_type(cx, "output_dtype")?;
    let saturate = attributes.int_or("saturate", 1)? != 0;
    Ok(Box::new(QuantizeLinear {
        axis: attributes.int_or("axis", 1)?,
        block,
        overflow: if saturate { Overflow::Saturate } else { Overflow::NonFinite },
        to,
        precision: type_attribute(cx, "precision")?,
    }))
}

impl Kernel for QuantizeLinear {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let scale = cx.tensor(1)?;
        let scale_shape = Shape::from_slice(scale.shape());
        let precision = self.precision.unwrap_or(scale.dtype());
        let scales = floats(cx, 1)?;
        let zero = cx.opt_tensor(2)?.map(|z| (z.dtype(), Shape::from_slice(z.shape())));
        let dtype = zero.as_ref().map(|z| z.0).or(self.to).unwrap_or(DType::Uint8);
        if let Some((_, shape)) = &zero
            && shape.iter().product::<usize>() != scales.len()
        {
            let shapes = vec![scale_shape, shape.clone()];
            return Err(KernelError::Shape { what: "scales and zero points are as many", shapes });
        }
        let target = Target::of(dtype).ok_or_else(|| wrong_type(cx, 2, "a type that is quantized to"))?;
        let zeros = match (&target, zero) {
            (Target::Integer { .. }, Some(_)) => integers(cx, 2, &cx.dense(2)?)?,
            _ => vec![0; scales.len()],
        };
        let which = Granularity::new(x.shape(), &scale_shape, self.axis, self.block)?;
        let values: Vec<f32> = by_type!(x.dtype(), [f32, f16, bf16, f64],
        T => x.as_slice::<T>()?.iter().map(|v| v.to_f32()).collect(), _ => match x.dtype() {
            DType::Int32 => x.as_slice::<i32>()?.iter().map(|&v| v as f32).collect(),
            _ => return Err(wrong_type(cx, 0, "real numbers or INT32")),
        });
        let rounded: fn(f32) -> f32 = match precision {
            DType::Float16 => |v| f16::from_f32(v).to_f32(),
            DType::BFloat16 => |v| bf16::from_f32(v).to_f32(),
            _ => |v| v,
        };
        let mut watch = cx.cancel().watch();
        let codes: Vec<i32> = values
            .iter()
            .enumerate()
            .map(|(at, &v)| {
                watch.pass(1)?;
                let own = which.of(at);
                Ok(target.code(rounded(v / scales[own]), zeros[own], self.overflow))
            })
            .collect::<Result<_, Cancelled>>()?;
        let mut out = cx.alloc(dtype, x.shape())?;
        write_codes(&mut out, &codes);
        cx.set(0, out.freeze());
        Ok(())
    }
}
