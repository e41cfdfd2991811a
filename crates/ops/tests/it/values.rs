//! Tensors of recorded cases, and how results are compared.

use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_types::bits;
use serde_json::Value as Json;

/// `[type, shape, hexadecimal bytes]`.
pub(crate) fn tensor(json: &Json) -> Tensor {
    let dtype = DType::from_onnx(json[0].as_i64().unwrap() as i32).unwrap();
    let shape: Vec<usize> =
        json[1].as_array().unwrap().iter().map(|d| d.as_u64().unwrap() as usize).collect();
    let hex = json[2].as_str().unwrap().as_bytes();
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    let bytes: Vec<u8> = hex.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    // In a buffer of the pool's kind, so that kernels may write into it where they may.
    let mut own = heirloom_mem::BytesMut::zeroed(bytes.len(), &heirloom_mem::Ledger::default());
    own.as_mut_slice().copy_from_slice(&bytes);
    Tensor::new(dtype, &shape, own.freeze()).unwrap()
}

/// The payload in row-major order.
pub(crate) fn payload(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    tensor.for_each_run(|run| bytes.extend_from_slice(run));
    bytes
}

/// The elements as numbers.
pub(crate) fn numbers(tensor: &Tensor) -> Vec<f64> {
    let bytes = payload(tensor);
    macro_rules! read {
        ($ty:ty, $f:expr) => {
            bytes
                .chunks_exact(size_of::<$ty>())
                .map(|c| $f(<$ty>::from_le_bytes(c.try_into().unwrap())))
                .collect()
        };
    }
    match tensor.dtype() {
        DType::Float => read!(f32, f64::from),
        DType::Double => read!(f64, |v: f64| v),
        DType::Float16 => read!(half::f16, half::f16::to_f64),
        DType::BFloat16 => read!(half::bf16, half::bf16::to_f64),
        DType::Int64 => read!(i64, |v| v as f64),
        DType::Int32 => read!(i32, f64::from),
        DType::Int16 => read!(i16, f64::from),
        DType::Int8 => read!(i8, f64::from),
        DType::Uint64 => read!(u64, |v| v as f64),
        DType::Uint32 => read!(u32, f64::from),
        DType::Uint16 => read!(u16, f64::from),
        DType::Uint8 | DType::Bool => bytes.iter().map(|&v| f64::from(v)).collect(),
        dtype => {
            let mut codes = vec![0; tensor.len()];
            bits::unpack(&bytes, dtype.bit_width().unwrap(), 0, &mut codes);
            codes.iter().map(|&v| f64::from(v)).collect()
        }
    }
}

/// The first difference beyond what rounding in the element type explains.
pub(crate) fn difference(actual: &Tensor, expected: &Tensor, exact: bool) -> Option<String> {
    let (relative, absolute) = match expected.dtype() {
        _ if exact => (0.0, 0.0),
        DType::Float => (2e-5, 2e-6),
        DType::Double => (1e-12, 1e-12),
        DType::Float16 => (4e-3, 4e-3),
        DType::BFloat16 => (3e-2, 3e-2),
        _ => (0.0, 0.0),
    };
    difference_within(actual, expected, (relative, absolute))
}

/// The first difference beyond these bounds.
pub(crate) fn difference_within(
    actual: &Tensor,
    expected: &Tensor,
    (relative, absolute): (f64, f64),
) -> Option<String> {
    if (actual.dtype(), actual.shape()) != (expected.dtype(), expected.shape()) {
        let show = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
        return Some(format!("{} instead of {}", show(actual), show(expected)));
    }
    let close =
        |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= absolute + relative * b.abs();
    let pairs = numbers(actual).into_iter().zip(numbers(expected));
    pairs
        .enumerate()
        .find(|(_, (a, b))| !close(*a, *b))
        .map(|(at, (a, b))| format!("[{at}] {a} instead of {b}"))
}

/// The same elements at an odd address, owned by somebody else.
pub(crate) fn misaligned(tensor: &Tensor) -> Tensor {
    let mut bytes = vec![0u8];
    bytes.extend_from_slice(&payload(tensor));
    let bytes = Bytes::from_vec(bytes);
    let even = usize::from(bytes.address() % 2 == 1);
    let mut shifted = vec![0u8; 1 + even];
    shifted.extend_from_slice(&payload(tensor));
    let shifted = Bytes::from_vec(shifted);
    let start = 1 + usize::from(shifted.address() % 2 == 1);
    if start + payload(tensor).len() > shifted.len() {
        return tensor.clone();
    }
    Tensor::new(tensor.dtype(), tensor.shape(), shifted.slice(start..start + payload(tensor).len())).unwrap()
}
