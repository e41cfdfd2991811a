//! Values from the messages that the suite keeps them in.

use std::sync::Arc;

use heirloom::mem::Bytes;
use heirloom::proto::{MapProto, OptionalProto, SequenceProto, TensorProto};
use heirloom::types::{MapKey, ValueType, value_from_proto};
use heirloom::{DType, Tensor, Value};

/// The value in `bytes`, a message of the kind that `ty` says.
pub(crate) fn decode(bytes: Bytes, ty: Option<&ValueType>) -> Result<Value, String> {
    let broken = |error: heirloom::proto::DecodeError| error.to_string();
    match ty {
        Some(ValueType::Sequence(_)) => sequence(&SequenceProto::decode(bytes).map_err(broken)?),
        Some(ValueType::Map { .. }) => map(&MapProto::decode(bytes).map_err(broken)?),
        // Cases of old versions hold the value itself, without an optional around it.
        Some(ValueType::Optional(inner)) => match OptionalProto::decode(bytes.clone()) {
            Ok(proto) if is_optional(&proto) => optional(&proto),
            _ => Ok(Value::Optional(Some(Arc::new(decode(bytes, Some(inner))?)))),
        },
        _ => {
            let value = tensor(&TensorProto::decode(bytes).map_err(broken)?)?;
            Ok(declared(value, ty))
        }
    }
}

/// Old versions of the suite keep BFLOAT16 elements as UINT16 ones of the same bits.
fn declared(value: Value, ty: Option<&ValueType>) -> Value {
    let wanted = ty.and_then(ValueType::as_tensor).map(|spec| spec.dtype);
    match (&value, wanted) {
        (Value::Tensor(tensor), Some(dtype @ DType::BFloat16)) if tensor.dtype() == DType::Uint16 => {
            let bytes = tensor.dense_bytes().map(|bytes| Bytes::from_vec::<u8>(Vec::from(bytes)));
            let tensor = bytes.and_then(|bytes| Tensor::new(dtype, tensor.shape(), bytes).ok());
            tensor.map_or(value, Value::Tensor)
        }
        _ => value,
    }
}

fn tensor(proto: &TensorProto) -> Result<Value, String> {
    value_from_proto(proto, None).map_err(|error| error.to_string())
}

/// Whether a message that was read as an optional is one: a tensor's `dims` stand where its type would.
fn is_optional(proto: &OptionalProto) -> bool {
    proto.unknown_fields().is_empty()
        && match proto.elem_type() {
            0 => !proto.has_tensor_value() && !proto.has_sequence_value(),
            1 => !proto.has_sequence_value(),
            3 => !proto.has_tensor_value(),
            _ => true,
        }
}

fn list(values: Result<Vec<Value>, String>) -> Result<Value, String> {
    Ok(Value::Sequence(Arc::new(values?)))
}

fn sequence(proto: &SequenceProto) -> Result<Value, String> {
    match proto.elem_type() {
        3 => list(proto.sequence_values().iter().map(sequence).collect()),
        4 => list(proto.map_values().iter().map(map).collect()),
        5 => list(proto.optional_values().iter().map(optional).collect()),
        _ => list(proto.tensor_values().iter().map(tensor).collect()),
    }
}

fn optional(proto: &OptionalProto) -> Result<Value, String> {
    let value = if let Some(inner) = proto.tensor_value() {
        Some(tensor(inner)?)
    } else if let Some(inner) = proto.sequence_value() {
        Some(sequence(inner)?)
    } else if let Some(inner) = proto.map_value() {
        Some(map(inner)?)
    } else if let Some(inner) = proto.optional_value() {
        Some(optional(inner)?)
    } else {
        None
    };
    Ok(Value::Optional(value.map(Arc::new)))
}

fn map(proto: &MapProto) -> Result<Value, String> {
    let keys = proto.keys().iter().map(|&key| MapKey::Int(key));
    let keys = keys.chain(proto.string_keys().iter().map(|key| MapKey::String(key.into())));
    let values = match proto.values() {
        Some(values) => sequence(values)?,
        None => Value::Sequence(Arc::default()),
    };
    let Value::Sequence(values) = values else { return Err("a map without a list of values".into()) };
    let mut entries: Vec<_> = keys.zip(values.iter().cloned()).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Value::Map(Arc::new(entries)))
}

/// The same value with the elements of a tensor apart from each other and in another order in memory.
pub(crate) fn apart(value: &Value) -> Value {
    let Value::Tensor(tensor) = value else { return value.clone() };
    let width = tensor.dtype().bit_width().filter(|bits| bits % 8 == 0).map(|bits| bits as usize / 8);
    let (Some(width), Some(bytes), false) = (width, tensor.dense_bytes(), tensor.is_empty()) else {
        return value.clone();
    };
    // The first axis is the innermost one, with a gap behind each element.
    let mut strides = Vec::with_capacity(tensor.shape().len());
    let mut stride = 2;
    for &extent in tensor.shape() {
        strides.push(stride);
        stride *= extent;
    }
    let mut to = vec![0xa5u8; 2 * bytes.len()];
    for (at, element) in bytes.chunks_exact(width).enumerate() {
        let (mut rest, mut place) = (at, 0);
        for (&extent, &stride) in tensor.shape().iter().zip(&strides).rev() {
            place += rest % extent * stride;
            rest /= extent;
        }
        to[place * width..][..width].iter_mut().zip(element).for_each(|(to, byte)| *to = *byte);
    }
    let strided = Tensor::strided(tensor.dtype(), tensor.shape(), &strides, Bytes::from_vec(to));
    strided.map_or_else(|_| value.clone(), Value::Tensor)
}

/// The elements of a tensor of real or complex numbers, complex ones as two each.
pub(crate) fn numbers(tensor: &Tensor) -> Result<Vec<f64>, String> {
    use heirloom::types::bits;
    use heirloom::types::floats::{SmallFloat, e8m0_to_f32};

    let mut bytes = Vec::with_capacity(tensor.byte_len());
    tensor.for_each_run(|run| bytes.extend(run));
    macro_rules! elements {
        ($ty:ty) => {{
            let (elements, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            elements.iter().map(|&bytes| <$ty>::from_le_bytes(bytes) as f64).collect()
        }};
    }
    let narrow = |value: fn(u8, u32) -> f64| {
        let width = tensor.dtype().bit_width().unwrap_or(8);
        let mut codes = vec![0; tensor.len()];
        bits::unpack(&bytes, width, 0, &mut codes);
        codes.into_iter().map(|code| value(code, width)).collect()
    };
    let halves = |value: fn([u8; 2]) -> f64| bytes.as_chunks::<2>().0.iter().map(|&b| value(b)).collect();
    Ok(match tensor.dtype() {
        DType::Float | DType::Complex64 => elements!(f32),
        DType::Double | DType::Complex128 => elements!(f64),
        DType::Int64 => elements!(i64),
        DType::Int32 => elements!(i32),
        DType::Int16 => elements!(i16),
        DType::Uint64 => elements!(u64),
        DType::Uint32 => elements!(u32),
        DType::Uint16 => elements!(u16),
        DType::Float16 => halves(|bytes| half::f16::from_le_bytes(bytes).to_f64()),
        DType::BFloat16 => halves(|bytes| half::bf16::from_le_bytes(bytes).to_f64()),
        DType::Bool | DType::Uint8 | DType::Uint4 | DType::Uint2 => narrow(|code, _| f64::from(code)),
        DType::Int8 | DType::Int4 | DType::Int2 => {
            narrow(|code, width| bits::sign_extend(u64::from(code), width) as f64)
        }
        DType::Float8E8M0 => narrow(|code, _| f64::from(e8m0_to_f32(code))),
        dtype => match SmallFloat::of(dtype) {
            Some(float) => {
                let mut codes = vec![0; tensor.len()];
                bits::unpack(&bytes, float.width(), 0, &mut codes);
                codes.into_iter().map(|code| f64::from(float.decode(code))).collect()
            }
            None => return Err(format!("{dtype} elements are not compared")),
        },
    })
}
