//! What com.microsoft's operators on quantized tensors have in common: codes become numbers, numbers codes.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{KernelError, RunCx};
use heirloom_types::floats::Overflow;

use crate::elementwise::wrong_type;
use crate::quantized::{Target, floats, integers, write_codes, zero_points};
use crate::reals::misfit;

/// The numbers that input `index` stands for, its scale and zero point being inputs `index + 1` and `index + 2`.
pub(crate) fn read(cx: &RunCx<'_>, index: usize) -> Result<(Shape, Vec<f32>), KernelError> {
    let x = cx.dense(index)?;
    let (scale, zero) = (floats(cx, index + 1)?, zero_points(cx, index + 2)?);
    if scale.len() != 1 || zero.len() != 1 {
        return Err(misfit("there is one scale and one zero point", &[&[scale.len()], &[zero.len()]]));
    }
    let values = integers(cx, index, &x)?.into_iter().map(|code| (code - zero[0]) as f32 * scale[0]);
    Ok((Shape::from_slice(x.shape()), values.collect()))
}

/// Sets output 0 to the codes of these numbers, its scale and zero point being inputs `index` and `index + 1`; of `dtype`
/// where there is no zero point.
pub(crate) fn write(
    cx: &mut RunCx<'_>,
    index: usize,
    dtype: DType,
    shape: &[usize],
    values: &[f32],
) -> Result<(), KernelError> {
    let (scale, zero) = (floats(cx, index)?, zero_points(cx, index + 1)?);
    let dtype = cx.opt_tensor(index + 1)?.map_or(dtype, |zero| zero.dtype());
    if scale.len() != 1 || zero.len() != 1 {
        return Err(misfit("there is one scale and one zero point", &[&[scale.len()], &[zero.len()]]));
    }
    let target = Target::of(dtype).ok_or_else(|| wrong_type(cx, index + 1, "UINT8 or INT8"))?;
    let codes: Vec<i32> =
        values.iter().map(|v| target.code(v / scale[0], zero[0], Overflow::Saturate)).collect();
    let mut out = cx.alloc(dtype, shape)?;
    write_codes(&mut out, &codes);
    cx.set(0, out.freeze());
    Ok(())
}
