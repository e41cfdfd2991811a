//! Numbers to codes, as ONNX's QuantizeLinear.

use heirloom_mem::DType;

use super::Affine;
use super::decode::rounding;
use super::parameters::{Codes, Run, Runs, Scales};
use crate::{CodecError, TensorType, bits};

/// Elements that are converted at a time: whole bytes of codes of every width.
const CHUNK: usize = 256;

impl Affine {
    /// Encodes a whole value of type `logical` with these scales and zero points; `values` are its elements, numbers
    /// of the logical element type.
    ///
    /// Each code is `round(value / scale) + zero_point`, rounded to nearest with ties to even, then limited to the
    /// storage type's range. The quotient is rounded to FLOAT16 or BFLOAT16 where value and scale are both of that
    /// type, else to FLOAT, as in `onnx.reference`. NaN becomes the zero point. Unused bits of the last byte are 0.
    ///
    /// # Errors
    /// When `values` or `codes` has another length than the value takes.
    pub fn encode(&self, logical: &TensorType, values: &[f32], codes: &mut [u8]) -> Result<(), CodecError> {
        let elements = heirloom_mem::element_count(&logical.shape).unwrap_or(usize::MAX);
        if values.len() != elements {
            return Err(CodecError::Elements { expected: elements, actual: values.len() });
        }
        let expected = self.payload_bytes(elements).unwrap_or(usize::MAX);
        if codes.len() != expected {
            return Err(CodecError::PayloadLength { expected: expected as u64, actual: codes.len() as u64 });
        }
        let same = self.scale.dtype() == logical.dtype;
        let round = rounding(if same { logical.dtype } else { DType::Float });
        let target = Codes::new(self.storage, &[]);
        let (low, high) = target.range();
        let scales = Scales::new(&self.scale);
        let zero_points = self.zero_point.as_ref().and_then(|z| z.dense_bytes());
        let zero_points = zero_points.map(|bytes| Codes::new(self.storage, bytes));
        let mut buffer = Vec::with_capacity(CHUNK);
        let (mut at, mut bytes) = (0, codes);
        for Run { len, parameter, step } in Runs::new(self, &logical.shape, 0, elements) {
            let (mut scale, mut zero_point) = ([0.0], 0);
            for i in 0..len {
                if step == 1 || i == 0 {
                    scales.read(parameter + i * step, &mut scale);
                    if let Some(zero_points) = &zero_points {
                        let mut code = [0];
                        zero_points.unpack(parameter + i * step, &mut code);
                        zero_point = zero_points.value(code[0]);
                    }
                }
                let quotient = round(values[at + i] / scale[0]).round_ties_even();
                // `as` gives 0 for NaN and limits what is beyond i32; no zero point matters out there.
                let code = (quotient as i32).saturating_add(zero_point).clamp(low, high);
                // The low bits of the two's complement number are the code.
                buffer.push(code as u8);
                if buffer.len() == CHUNK {
                    bytes = flush(&mut buffer, target.width(), bytes);
                }
            }
            at += len;
        }
        flush(&mut buffer, target.width(), bytes);
        Ok(())
    }
}

fn flush<'a>(buffer: &mut Vec<u8>, width: u32, bytes: &'a mut [u8]) -> &'a mut [u8] {
    let (now, rest) = bytes.split_at_mut((buffer.len() * width as usize).div_ceil(8));
    bits::pack(buffer, width, now);
    buffer.clear();
    rest
}
