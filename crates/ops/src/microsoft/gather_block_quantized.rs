//! [`GatherBlockQuantized`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GatherBlockQuantized):
//! slices of a tensor of codes with a scale for each block along an axis, dequantized. UINT8 data holds codes of 2, 4 or 8
//! bits packed along its last axis.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::bits;

use crate::attributes::{only, unsupported};
use crate::elementwise::wrong_type;
use crate::integers;
use crate::onnx::gather::places;
use crate::quantized::{self, floats};
use crate::reals::{misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "GatherBlockQuantized",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Blocks {
    bits: u32,
    block: usize,
    gather: i64,
    quantize: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["bits", "block_size", "gather_axis", "quantize_axis"])?;
    let attributes = &cx.node.attributes;
    let (bits, block) = (attributes.int_or("bits", 4)?, attributes.int_or("block_size", 128)?);
    if ![2, 4, 8].contains(&bits) {
        return Err(unsupported("bits", bits, "2, 4 and 8 are"));
    }
    let fits = usize::try_from(block).ok().filter(|b| b.is_power_of_two() && (16..=1 << 30).contains(b));
    let block = fits.ok_or_else(|| unsupported("block_size", block, "powers of two from 16 on are"))?;
    Ok(Box::new(Blocks {
        bits: bits as u32,
        block,
        gather: attributes.int_or("gather_axis", 0)?,
        quantize: attributes.int_or("quantize_axis", 1)?,
    }))
}

/// Codes as integers, one for each element, and the shape with one element each.
fn unpacked(
    cx: &RunCx<'_>,
    index: usize,
    tensor: &Tensor,
    width: u32,
) -> Result<(Shape, Vec<i32>), KernelError> {
    let mut shape = Shape::from_slice(tensor.shape());
    if tensor.dtype() != DType::Uint8 || width == 8 {
        return Ok((shape, quantized::integers(cx, index, tensor)?));
    }
    if let Some(last) = shape.last_mut() {
        *last = last.saturating_mul(8 / width as usize);
    }
    let mut codes = vec![0; shape.iter().product()];
    bits::unpack(tensor.dense_bytes().unwrap_or(&[]), width, 0, &mut codes);
    Ok((shape, codes.into_iter().map(i32::from).collect()))
}

impl Kernel for Blocks {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let data = cx.dense(0)?;
        let packed = data.dtype() == DType::Uint8;
        if !packed && ![DType::Int4, DType::Uint4].contains(&data.dtype()) {
            return Err(wrong_type(cx, 0, "INT4, UINT4 or UINT8"));
        }
        let (from, codes) = unpacked(cx, 0, &data, self.bits)?;
        let gather = heirloom_runtime::normalize_axis(self.gather, from.len())?;
        let axis = heirloom_runtime::normalize_axis(self.quantize, from.len())?;
        if packed && axis + 1 != from.len() {
            return Err(misfit("packed codes have their blocks along the last axis", &[&from]));
        }
        let (dtype, scale_shape) = (cx.tensor(2)?.dtype(), Shape::from_slice(cx.tensor(2)?.shape()));
        let scales = floats(cx, 2)?;
        let mut expected = from.clone();
        expected[axis] = from[axis].div_ceil(self.block);
        if scale_shape != expected {
            return Err(misfit("there is one scale for each block", &[&scale_shape, &expected]));
        }
        let middle = if packed { 1 << (self.bits - 1) } else { 0 };
        let zero_points = match cx.opt_tensor(3)?.is_some().then(|| cx.dense(3)).transpose()? {
            None => None,
            Some(tensor) => {
                let (shape, codes) = unpacked(cx, 3, &tensor, self.bits)?;
                // Packed rows end with whole bytes.
                let width = shape.last().copied().unwrap_or(1).max(1);
                let least = expected.last().copied().unwrap_or(1).max(1);
                let rows = scales.len() / least;
                if width < least || width - least >= 8 || codes.len() != rows * width {
                    return Err(misfit("there is one zero point for each block", &[&shape, &expected]));
                }
                Some((codes, width, least))
            }
        };
        let zero_point = |at: usize| match &zero_points {
            None => middle,
            Some((codes, width, least)) => codes[at / least * width + at % least],
        };
        let indices = integers::list(cx, 1)?;
        let places = places(&indices, from[gather])?;
        let mut shape = Shape::from_slice(&from[..gather]);
        shape.extend_from_slice(cx.tensor(1)?.shape());
        shape.extend_from_slice(&from[gather + 1..]);
        let inner: usize = from[gather + 1..].iter().product();
        let outer: usize = from[..gather].iter().product();
        let (below, extent) = (from[axis + 1..].iter().product::<usize>(), from[axis]);
        let mut out = Vec::with_capacity(shape.iter().product());
        for block in 0..outer {
            cx.cancel().check()?;
            for &place in &places {
                let first = (block * from[gather] + place) * inner;
                out.extend((first..first + inner).map(|at| {
                    let (rest, column) = (at / below, at % below);
                    let of = (rest / extent * expected[axis] + rest % extent / self.block) * below + column;
                    f64::from((codes[at] - zero_point(of)) as f32 * scales[of])
                }));
            }
        }
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        Ok(())
    }
}
