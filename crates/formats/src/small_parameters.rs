//! Parameters of FLOAT, FLOAT16 or BFLOAT16 in a row.

use half::{bf16, f16};
use heirloom_mem::DType;

/// Parameter `index` of `bytes`; `dtype` is FLOAT, FLOAT16 or BFLOAT16.
pub(crate) fn get(dtype: DType, bytes: &[u8], index: usize) -> f32 {
    match dtype {
        DType::Float => f32::from_le_bytes(bytes.as_chunks().0[index]),
        DType::Float16 => f16::from_le_bytes(bytes.as_chunks().0[index]).to_f32(),
        _ => bf16::from_le_bytes(bytes.as_chunks().0[index]).to_f32(),
    }
}

/// Stores parameter `index`, rounded to nearest even, and gives what was stored.
pub(crate) fn put(dtype: DType, bytes: &mut [u8], index: usize, value: f32) -> f32 {
    match dtype {
        DType::Float => bytes.as_chunks_mut().0[index] = value.to_le_bytes(),
        DType::Float16 => bytes.as_chunks_mut().0[index] = f16::from_f32(value).to_le_bytes(),
        _ => bytes.as_chunks_mut().0[index] = bf16::from_f32(value).to_le_bytes(),
    }
    get(dtype, bytes, index)
}
