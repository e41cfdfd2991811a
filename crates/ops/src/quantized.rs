//! Affine quantization: codes with a scale and a zero point for a tensor, an axis or blocks along an axis.

use half::{bf16, f16};
use heirloom_mem::{DType, Shape, Tensor, TensorMut};
use heirloom_runtime::{KernelError, RunCx};
use heirloom_types::bits;
use heirloom_types::floats::{Overflow, SmallFloat};

use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;

/// One byte for each element of a type of a byte or less.
pub(crate) fn codes(tensor: &Tensor) -> Vec<u8> {
    let bytes = tensor.dense_bytes().unwrap_or(&[]);
    let mut codes = vec![0; tensor.len()];
    match tensor.dtype().bit_width() {
        Some(width) if width < 8 => bits::unpack(bytes, width, 0, &mut codes),
        _ => codes.iter_mut().zip(bytes).for_each(|(c, &b)| *c = b),
    }
    codes
}

/// The elements of a tensor of quantized integers.
///
/// # Errors
/// When it holds others.
pub(crate) fn integers(cx: &RunCx<'_>, index: usize, tensor: &Tensor) -> Result<Vec<i32>, KernelError> {
    let small = |f: &dyn Fn(u8) -> i32| Ok(codes(tensor).into_iter().map(f).collect());
    match tensor.dtype() {
        DType::Uint8 | DType::Uint4 | DType::Uint2 => small(&i32::from),
        DType::Int8 => small(&|c| i32::from(c.cast_signed())),
        DType::Int4 => small(&|c| bits::sign_extend(u64::from(c), 4) as i32),
        DType::Int2 => small(&|c| bits::sign_extend(u64::from(c), 2) as i32),
        DType::Uint16 => Ok(tensor.as_slice::<u16>()?.iter().map(|&v| i32::from(v)).collect()),
        DType::Int16 => Ok(tensor.as_slice::<i16>()?.iter().map(|&v| i32::from(v)).collect()),
        DType::Int32 => Ok(Vec::from(tensor.as_slice::<i32>()?)),
        _ => Err(wrong_type(cx, index, "integers of at most 32 bits")),
    }
}

/// The elements of an input of FLOAT, FLOAT16 or BFLOAT16.
///
/// # Errors
/// When it is absent or of another type.
pub(crate) fn floats(cx: &RunCx<'_>, index: usize) -> Result<Vec<f32>, KernelError> {
    let tensor = cx.dense(index)?;
    by_type!(tensor.dtype(), [f32, f16, bf16, f64],
    T => Ok(tensor.as_slice::<T>()?.iter().map(|v| v.to_f32()).collect()), _ => match tensor.dtype() {
        DType::Float8E8M0 => Ok(codes(&tensor).into_iter().map(heirloom_types::floats::e8m0_to_f32).collect()),
        _ => Err(wrong_type(cx, index, "FLOAT, FLOAT16 or BFLOAT16")),
    })
}

/// The integers of an input, or zeros where it is absent.
///
/// # Errors
/// When it holds no integers.
pub(crate) fn zero_points(cx: &RunCx<'_>, index: usize) -> Result<Vec<i32>, KernelError> {
    match cx.opt_tensor(index)? {
        None => Ok(vec![0]),
        Some(_) => integers(cx, index, &cx.dense(index)?),
    }
}

/// Which parameter belongs to which element.
pub(crate) struct Granularity {
    /// Elements inside the axis, elements of the axis, consecutive ones of a block, blocks of the axis.
    inner: usize,
    extent: usize,
    block: usize,
    blocks: usize,
    /// Whether each element beside the axis has parameters of its own.
    blocked: bool,
}

impl Granularity {
    /// From the shapes of the elements and of the parameters, and the attributes.
    ///
    /// # Errors
    /// When they do not fit.
    pub(crate) fn new(
        shape: &[usize],
        parameters: &[usize],
        axis: i64,
        block: usize,
    ) -> Result<Granularity, KernelError> {
        let misfit = || KernelError::Shape {
            what: "there is one scale, or one for each element of the axis, or one for each block along it",
            shapes: vec![Shape::from_slice(shape), Shape::from_slice(parameters)],
        };
        if parameters.iter().product::<usize>() == 1 && parameters.len() <= 1 && block == 0 {
            return Ok(Granularity { inner: 1, extent: 1, block: 1, blocks: 1, blocked: false });
        }
        let axis = heirloom_runtime::normalize_axis(axis, shape.len())?;
        let inner = shape[axis + 1..].iter().product();
        let extent = shape[axis];
        if block == 0 {
            if parameters != [extent] {
                return Err(misfit());
            }
            return Ok(Granularity { inner, extent, block: 1, blocks: extent, blocked: false });
        }
        let blocks = extent.div_ceil(block);
        let expected = shape.iter().enumerate().map(|(at, &d)| if at == axis { blocks } else { d });
        if !expected.eq(parameters.iter().copied()) {
            return Err(misfit());
        }
        Ok(Granularity { inner, extent, block, blocks, blocked: true })
    }

    /// The parameter of element `at`.
    pub(crate) fn of(&self, at: usize) -> usize {
        if self.extent == 1 && !self.blocked {
            return 0;
        }
        let (outer, rest) = (at / (self.inner * self.extent), at / self.inner % self.extent);
        if self.blocked {
            (outer * self.blocks + rest / self.block) * self.inner + at % self.inner
        } else {
            rest
        }
    }
}

/// A type that is quantized to.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Integer { low: i32, high: i32 },
    Float(&'static SmallFloat),
}

impl Target {
    pub(crate) fn of(dtype: DType) -> Option<Target> {
        let (low, high) = match dtype {
            DType::Uint8 => (0, 255),
            DType::Int8 => (-128, 127),
            DType::Uint16 => (0, 65535),
            DType::Int16 => (-32768, 32767),
            DType::Uint4 => (0, 15),
            DType::Int4 => (-8, 7),
            DType::Uint2 => (0, 3),
            DType::Int2 => (-2, 1),
            other => return SmallFloat::of(other).map(Target::Float),
        };
        Some(Target::Integer { low, high })
    }

    /// The code of `x`, which is already divided by the scale. Ties round to even.
    pub(crate) fn code(self, x: f32, zero: i32, overflow: Overflow) -> i32 {
        match self {
            // The nearest integer first, then the zero point, as the standard has it; NaN becomes the zero point.
            Target::Integer { low, high } => {
                let rounded = x.round_ties_even().clamp(-1e9, 1e9) as i32;
                (rounded + zero).clamp(low, high)
            }
            Target::Float(float) => i32::from(float.encode(x, overflow)),
        }
    }
}

/// Writes codes into a tensor of their type.
pub(crate) fn write_codes(out: &mut TensorMut, codes: &[i32]) {
    match out.dtype() {
        DType::Uint16 => out.elements_mut::<u16>().iter_mut().zip(codes).for_each(|(o, &c)| *o = c as u16),
        DType::Int16 => out.elements_mut::<i16>().iter_mut().zip(codes).for_each(|(o, &c)| *o = c as i16),
        DType::Int32 => out.elements_mut::<i32>().iter_mut().zip(codes).for_each(|(o, &c)| *o = c),
        dtype => match dtype.bit_width() {
            Some(width) if width < 8 => {
                let mask = (1u8 << width) - 1;
                let codes: Vec<u8> = codes.iter().map(|&c| c as u8 & mask).collect();
                bits::pack(&codes, width, out.bytes_mut());
            }
            _ => out.bytes_mut().iter_mut().zip(codes).for_each(|(o, &c)| *o = c as u8),
        },
    }
}

/// The least and the greatest of `x` and zero.
pub(crate) fn extremes(x: &[f32]) -> [f32; 2] {
    [x.iter().fold(0.0f32, |m, &v| m.min(v)), x.iter().fold(0.0f32, |m, &v| m.max(v))]
}

/// The scale and zero point that cover the range of `x` and zero with the codes 0 to 255.
pub(crate) fn dynamic(x: &[f32]) -> (f32, i32) {
    let [low, high] = extremes(x);
    let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
    (scale, (-low / scale).round_ties_even().clamp(0.0, 255.0) as i32)
}

/// The codes of [`dynamic`] parameters, less the zero point.
pub(crate) fn dynamic_codes(x: &[f32], scale: f32, zero: i32) -> impl Iterator<Item = i32> + '_ {
    x.iter().map(move |&v| ((v / scale).round_ties_even() as i32 + zero).clamp(0, 255) - zero)
}
