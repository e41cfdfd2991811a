//! Codes to numbers, as ONNX's DequantizeLinear.

use std::ops::Range;

use half::{bf16, f16};
use heirloom_mem::DType;

use super::Affine;
use super::parameters::{Codes, Run, Runs, Scales, elements};
use crate::{CodecError, TensorType};

/// Elements that are converted at a time.
const CHUNK: usize = 256;

/// Types that a product is rounded to.
pub(super) fn rounding(dtype: DType) -> fn(f32) -> f32 {
    match dtype {
        DType::Float16 => |x| f16::from_f32(x).to_f32(),
        DType::BFloat16 => |x| bf16::from_f32(x).to_f32(),
        _ => |x| x,
    }
}

impl Affine {
    /// Decodes the elements `range` (flat, in row-major order) of a value of type `logical` from all its codes.
    ///
    /// Each element is `(code - zero_point) * scale`: the difference exact, the product rounded once to the logical
    /// element type, `out` holding exactly that number. This is what `onnx.reference` and ONNX Runtime compute for
    /// DequantizeLinear, with `output_dtype` too. Nothing is allocated.
    ///
    /// # Errors
    /// When the codes are too few, the range lies outside, or `out` has another length.
    pub fn decode_range(
        &self,
        logical: &TensorType,
        codes: &[u8],
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), CodecError> {
        let count = heirloom_mem::element_count(&logical.shape);
        let available = count.filter(|&n| self.payload_bytes(n).is_some_and(|bytes| bytes <= codes.len()));
        let available = available.unwrap_or(0);
        if range.start > range.end || range.end > available {
            let count = range.end.saturating_sub(range.start);
            return Err(CodecError::Range { first: range.start, count, available });
        }
        if range.len() != out.len() {
            return Err(CodecError::Elements { expected: range.len(), actual: out.len() });
        }
        match logical.dtype {
            // A closure for each type, so that each loop is compiled for its own rounding.
            DType::Float16 => self.decode_runs(logical, codes, range, out, |x| f16::from_f32(x).to_f32()),
            DType::BFloat16 => self.decode_runs(logical, codes, range, out, |x| bf16::from_f32(x).to_f32()),
            _ => self.decode_runs(logical, codes, range, out, |x| x),
        }
        Ok(())
    }

    /// Decodes rows `rows` along the first axis: what Gather and tiles of a matrix need.
    ///
    /// # Errors
    /// As [`decode_range`](Affine::decode_range).
    pub fn decode_rows(
        &self,
        logical: &TensorType,
        codes: &[u8],
        rows: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), CodecError> {
        let row = elements(logical.shape.get(1..).unwrap_or(&[]));
        let (start, end) = (rows.start.saturating_mul(row), rows.end.saturating_mul(row));
        self.decode_range(logical, codes, start..end, out)
    }

    fn decode_runs(
        &self,
        logical: &TensorType,
        codes: &[u8],
        range: Range<usize>,
        out: &mut [f32],
        round: impl Fn(f32) -> f32 + Copy,
    ) {
        let codes = Codes::new(self.storage, codes);
        let scales = Scales::new(&self.scale);
        let zero_points = self.zero_point.as_ref().and_then(|z| z.dense_bytes());
        let zero_points = zero_points.map(|bytes| Codes::new(self.storage, bytes));
        let mut buffers = Buffers { codes: [0; CHUNK], zero_points: [0; CHUNK], scales: [0.0; CHUNK] };
        let (mut at, mut out) = (range.start, out);
        for Run { len, parameter, step } in Runs::new(self, &logical.shape, range.start, range.len()) {
            let (run, rest) = out.split_at_mut(len);
            out = rest;
            for (i, chunk) in run.chunks_mut(CHUNK).enumerate() {
                let (from, parameter) = (at + i * CHUNK, parameter + i * CHUNK * step);
                if step == 0 {
                    buffers.same(chunk, from, parameter, &codes, &scales, zero_points.as_ref(), round);
                } else {
                    buffers.each(chunk, from, parameter, &codes, &scales, zero_points.as_ref(), round);
                }
            }
            at += len;
        }
    }
}

struct Buffers {
    codes: [u8; CHUNK],
    zero_points: [u8; CHUNK],
    scales: [f32; CHUNK],
}

#[allow(clippy::too_many_arguments, reason = "the inner loops of one function")]
impl Buffers {
    /// Elements that share a parameter.
    fn same(
        &mut self,
        out: &mut [f32],
        first: usize,
        parameter: usize,
        codes: &Codes<'_>,
        scales: &Scales<'_>,
        zero_points: Option<&Codes<'_>>,
        round: impl Fn(f32) -> f32,
    ) {
        let mut zero_point = 0;
        if let Some(zero_points) = zero_points {
            let mut code = [0];
            zero_points.unpack(parameter, &mut code);
            zero_point = zero_points.value(code[0]);
        }
        let mut scale = [0.0];
        scales.read(parameter, &mut scale);
        let unpacked = &mut self.codes[..out.len()];
        codes.unpack(first, unpacked);
        for (to, &code) in out.iter_mut().zip(&*unpacked) {
            *to = round((codes.value(code) - zero_point) as f32 * scale[0]);
        }
    }

    /// Elements that have a parameter each.
    fn each(
        &mut self,
        out: &mut [f32],
        first: usize,
        parameter: usize,
        codes: &Codes<'_>,
        scales: &Scales<'_>,
        zero_points: Option<&Codes<'_>>,
        round: impl Fn(f32) -> f32,
    ) {
        let len = out.len();
        let (unpacked, scale) = (&mut self.codes[..len], &mut self.scales[..len]);
        codes.unpack(first, unpacked);
        scales.read(parameter, scale);
        match zero_points {
            Some(zero_points) => {
                let zeros = &mut self.zero_points[..len];
                zero_points.unpack(parameter, zeros);
                for (((to, &code), &zero), &scale) in out.iter_mut().zip(&*unpacked).zip(&*zeros).zip(&*scale)
                {
                    *to = round((codes.value(code) - codes.value(zero)) as f32 * scale);
                }
            }
            None => {
                for ((to, &code), &scale) in out.iter_mut().zip(&*unpacked).zip(&*scale) {
                    *to = round(codes.value(code) as f32 * scale);
                }
            }
        }
    }
}
