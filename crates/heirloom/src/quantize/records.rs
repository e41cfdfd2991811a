//! Tensors to records.

use std::sync::{Arc, Mutex, PoisonError};

use half::{bf16, f16};
use heirloom_formats::k_means::KMeans;
use heirloom_formats::nvfp4::Nvfp4;
use heirloom_formats::{Format, Shaped};
use heirloom_mem::{BytesMut, DType, Ledger, Tensor};
use heirloom_runtime::Team;
use heirloom_types::{Codec, EncodedValue, Layout, StructLayout, StructType, TensorType};

use super::target::ShapedTarget;

/// Elements that are encoded at a time, about.
const PART: usize = 1 << 16;

/// Elements `first..first + count` of a float tensor.
pub(super) fn floats(tensor: &Tensor, first: usize, count: usize) -> Vec<f32> {
    let bytes = tensor.dense_bytes().unwrap_or(&[]);
    match tensor.dtype() {
        DType::Float => {
            let (words, _) = bytes[first * 4..(first + count) * 4].as_chunks::<4>();
            words.iter().map(|&word| f32::from_le_bytes(word)).collect()
        }
        dtype => {
            let (words, _) = bytes[first * 2..(first + count) * 2].as_chunks::<2>();
            let wide: fn([u8; 2]) -> f32 = match dtype {
                DType::Float16 => |word| f16::from_le_bytes(word).to_f32(),
                _ => |word| bf16::from_le_bytes(word).to_f32(),
            };
            words.iter().map(|&word| wide(word)).collect()
        }
    }
}

fn value(
    name: &str,
    tensor: &Tensor,
    declaration: Arc<StructType>,
    records: BytesMut,
) -> Result<EncodedValue, String> {
    let layout = StructLayout::new(declaration).map_err(|error| error.to_string())?;
    Ok(EncodedValue {
        name: name.into(),
        layout: Layout::Struct(Arc::new(layout)),
        logical: Some(TensorType { dtype: tensor.dtype(), shape: tensor.shape().iter().copied().collect() }),
        payload: records.freeze(),
    })
}

/// The tensor in records of `format`, which lie along its last axis.
pub(super) fn of_format(
    name: &str,
    tensor: &Tensor,
    format: &'static Format,
    team: &dyn Team,
) -> Result<EncodedValue, String> {
    let row = tensor.shape().last().copied().unwrap_or(1);
    if !row.is_multiple_of(format.elements) {
        return Err(format!(
            "its last axis has {row} elements, no multiple of the {} of a record of {}",
            format.elements, format.name
        ));
    }
    let count = tensor.len() / format.elements;
    let mut records = BytesMut::zeroed(count * format.record_bytes, &Ledger::default());
    let step = (PART / format.elements).max(1);
    let failed = Mutex::new(None);
    {
        let parts: Vec<Mutex<&mut [u8]>> =
            records.as_mut_slice().chunks_mut(step * format.record_bytes).map(Mutex::new).collect();
        team.run(parts.len(), &|part| {
            let mut out = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            let elements = out.len() / format.record_bytes * format.elements;
            let first = part * step * format.elements;
            if let Err(error) = format.encode(&floats(tensor, first, elements), &mut out) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((first, error));
            }
        });
    }
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((0, error)) => Err(error.to_string()),
        Some((first, error)) => Err(format!("from element {first} on: {error}")),
        None => value(name, tensor, format.declaration().clone(), records),
    }
}

/// The tensor as one record of a type for its shape.
pub(super) fn of_family(name: &str, tensor: &Tensor, family: &ShapedTarget) -> Result<EncodedValue, String> {
    let shaped: Box<dyn Shaped> = match *family {
        ShapedTarget::Nvfp4 => Box::new(Nvfp4::new(tensor.len()).map_err(|error| error.to_string())?),
        ShapedTarget::KMeans { entries } => {
            Box::new(KMeans::new(tensor.len(), entries).map_err(|error| error.to_string())?)
        }
    };
    let mut records = BytesMut::zeroed(shaped.record_bytes(), &Ledger::default());
    let values = floats(tensor, 0, tensor.len());
    shaped.encode(&values, records.as_mut_slice()).map_err(|error| error.to_string())?;
    value(name, tensor, shaped.declaration(shaped.type_id()), records)
}
