//! Which scale and zero point belongs to which element.

use heirloom_mem::{DType, Tensor};

use super::Affine;
use crate::{bits, floats};

/// A stretch of elements in row-major order whose parameters lie one behind the other, or are all the same.
pub(super) struct Run {
    pub(super) len: usize,
    /// The parameter of the first element.
    pub(super) parameter: usize,
    /// From one element's parameter to the next one's: 0 or 1.
    pub(super) step: usize,
}

/// Walks over elements in row-major order.
pub(super) struct Runs {
    /// Extent of the axis, and elements of one index of it.
    extent: usize,
    inner: usize,
    /// Parameters along the axis, and elements of the axis that share one.
    blocks: usize,
    size: usize,
    per: Per,
    at: usize,
    end: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Per {
    Tensor,
    Axis,
    Block,
}

impl Runs {
    /// Over the elements `first..first + count` of a tensor of `shape`.
    pub(super) fn new(affine: &Affine, shape: &[usize], first: usize, count: usize) -> Runs {
        let end = first + count;
        let Some(axis) = affine.axis else {
            return Runs { extent: 1, inner: 1, blocks: 1, size: 1, per: Per::Tensor, at: first, end };
        };
        let (extent, inner) = (shape[axis], elements(&shape[axis + 1..]));
        match affine.block_size {
            None => Runs { extent, inner, blocks: extent, size: 1, per: Per::Axis, at: first, end },
            Some(size) => {
                let blocks = affine.scale.shape()[axis];
                Runs { extent, inner, blocks, size, per: Per::Block, at: first, end }
            }
        }
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let left = self.end - self.at;
        if left == 0 {
            return None;
        }
        let (i, rest) = (self.at % self.inner, self.at / self.inner);
        let (d, outer) = (rest % self.extent, rest / self.extent);
        let (len, parameter, step) = match self.per {
            Per::Tensor => (left, 0, 0),
            // Along the last axis each element has the next parameter; else a whole slice shares one.
            Per::Axis if self.inner == 1 => (self.extent - d, d, 1),
            Per::Axis => (self.inner - i, d, 0),
            Per::Block => {
                let parameter = (outer * self.blocks + d / self.size) * self.inner + i;
                if self.inner > 1 {
                    (self.inner - i, parameter, 1)
                } else if self.size == 1 {
                    (self.extent - d, parameter, 1)
                } else {
                    ((self.size - d % self.size).min(self.extent - d), parameter, 0)
                }
            }
        };
        let len = len.min(left);
        self.at += len;
        Some(Run { len, parameter, step })
    }
}

/// Elements of a part of a shape. Where another extent is 0 the rest may overflow, and does not matter.
pub(super) fn elements(shape: &[usize]) -> usize {
    shape.iter().fold(1, |n: usize, &d| n.saturating_mul(d))
}

/// Reads scales as f32, whatever their type.
pub(super) struct Scales<'a> {
    dtype: DType,
    bytes: &'a [u8],
}

impl<'a> Scales<'a> {
    pub(super) fn new(scale: &'a Tensor) -> Scales<'a> {
        Scales { dtype: scale.dtype(), bytes: scale.dense_bytes().unwrap_or(&[]) }
    }

    /// The scales from `first` on.
    pub(super) fn read(&self, first: usize, out: &mut [f32]) {
        fn each<const N: usize>(bytes: &[u8], first: usize, out: &mut [f32], get: impl Fn([u8; N]) -> f32) {
            let (elements, _) = bytes.as_chunks::<N>();
            out.iter_mut().zip(&elements[first..]).for_each(|(to, from)| *to = get(*from));
        }
        match self.dtype {
            DType::Float => each(self.bytes, first, out, f32::from_le_bytes),
            DType::Float16 => each(self.bytes, first, out, |b| half::f16::from_le_bytes(b).to_f32()),
            DType::BFloat16 => each(self.bytes, first, out, |b| half::bf16::from_le_bytes(b).to_f32()),
            // The check of the layout leaves FLOAT8E8M0 alone.
            _ => each(self.bytes, first, out, |[code]: [u8; 1]| floats::e8m0_to_f32(code)),
        }
    }
}

/// Reads codes as integers.
pub(super) struct Codes<'a> {
    width: u32,
    /// The sign bit of a code; 0 for unsigned ones.
    sign: u8,
    bytes: &'a [u8],
}

impl<'a> Codes<'a> {
    pub(super) fn new(dtype: DType, bytes: &'a [u8]) -> Codes<'a> {
        let width = dtype.bit_width().unwrap_or(8);
        let signed = matches!(dtype, DType::Int8 | DType::Int4 | DType::Int2);
        Codes { width, sign: if signed { 1 << (width - 1) } else { 0 }, bytes }
    }

    /// The codes from `first` on, not sign-extended yet.
    pub(super) fn unpack(&self, first: usize, out: &mut [u8]) {
        bits::unpack(self.bytes, self.width, first, out);
    }

    /// The integer that an unpacked code stands for.
    #[inline]
    pub(super) fn value(&self, code: u8) -> i32 {
        i32::from(code ^ self.sign) - i32::from(self.sign)
    }

    /// The least and the greatest integer.
    pub(super) fn range(&self) -> (i32, i32) {
        let half = i32::from(self.sign);
        (-half, (1 << self.width) - 1 - half)
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }
}
