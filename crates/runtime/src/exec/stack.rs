//! Slices of scanned tensors and the tensors that loops stack.

use std::sync::Arc;

use heirloom_mem::{DType, Ledger, Pool, Shape, Storage, Tensor, TensorMut, copy, element_count};
use heirloom_types::{StringTensor, Value};

use crate::KernelError;
use crate::plan::StackType;

fn too_large(shape: &Shape) -> KernelError {
    KernelError::Shape { what: "a tensor of this shape is too large", shapes: vec![shape.clone()] }
}

fn alloc(dtype: DType, shape: &Shape, pool: &mut Pool, ledger: &Ledger) -> Result<TensorMut, KernelError> {
    let bytes =
        element_count(shape).and_then(|n| dtype.payload_bytes(n)).filter(|&n| n <= isize::MAX as usize);
    Ok(TensorMut::new(dtype, shape, pool.take(bytes.ok_or_else(|| too_large(shape))?, ledger)))
}

/// Bytes of `elements` elements, which must fill whole bytes.
fn whole_bytes(dtype: DType, elements: usize) -> Result<usize, KernelError> {
    match dtype.bit_width() {
        Some(width) if (elements * width as usize).is_multiple_of(8) => Ok(elements * width as usize / 8),
        _ => Err(KernelError::Other(format!(
            "{elements} elements of {dtype} fill no whole number of bytes and cannot be sliced or stacked"
        ))),
    }
}

/// Element `at` of `tensor` along `axis`, without that axis: in place where it is dense there, else a counted copy.
pub(super) fn slice(
    tensor: &Tensor,
    axis: usize,
    at: usize,
    pool: &mut Pool,
    ledger: &Ledger,
) -> Result<Tensor, KernelError> {
    let mut shape = Shape::from_slice(tensor.shape());
    let length = shape.remove(axis);
    let outer: usize = shape[..axis].iter().product();
    let run = whole_bytes(tensor.dtype(), shape[axis..].iter().product())?;
    let dense = copy::to_dense(tensor, copy::Purpose::Kernel, ledger);
    if outer == 1
        && let Storage::Dense(bytes) = dense.storage()
    {
        return Ok(Tensor::new(tensor.dtype(), &shape, bytes.slice(at * run..(at + 1) * run))?);
    }
    let from = dense.dense_bytes().unwrap_or(&[]);
    let mut to = alloc(tensor.dtype(), &shape, pool, ledger)?;
    if run > 0 {
        for (to, from) in to.bytes_mut().chunks_exact_mut(run).zip(from.chunks_exact(run * length)) {
            copy::into(to, &from[at * run..(at + 1) * run], copy::Purpose::Kernel, ledger);
        }
    }
    Ok(to.freeze())
}

/// The tensors of `parts`, which have one shape, along a new axis `axis`.
pub(super) fn stack(
    parts: Vec<Value>,
    empty: &StackType,
    axis: i64,
    reverse: bool,
    pool: &mut Pool,
    ledger: &Ledger,
) -> Result<Value, KernelError> {
    let Some(first) = parts.first() else { return nothing(empty, axis) };
    if let Value::Strings(first) = first {
        return strings(&parts, first, axis, reverse);
    }
    let tensors: Vec<&Tensor> = parts.iter().filter_map(Value::as_tensor).collect();
    let shape = tensors.first().map(|t| Shape::from_slice(t.shape()));
    let (Some(first), Some(mut shape)) = (tensors.first(), shape) else {
        return Err(KernelError::Other(format!("a loop cannot stack a {}", first.kind())));
    };
    if tensors.len() != parts.len()
        || tensors.iter().any(|t| t.shape() != first.shape() || t.dtype() != first.dtype())
    {
        return Err(KernelError::Shape {
            what: "tensors that a loop stacks have one type and shape",
            shapes: tensors.iter().map(|t| Shape::from_slice(t.shape())).take(8).collect(),
        });
    }
    let axis = crate::normalize_axis(axis, shape.len() + 1)?;
    let outer: usize = shape[..axis].iter().product();
    let run = whole_bytes(first.dtype(), shape[axis..].iter().product())?;
    shape.insert(axis, parts.len());
    let mut to = alloc(first.dtype(), &shape, pool, ledger)?;
    let bytes = to.bytes_mut();
    for (at, tensor) in tensors.iter().enumerate() {
        let at = if reverse { parts.len() - 1 - at } else { at };
        let dense = copy::to_dense(tensor, copy::Purpose::Kernel, ledger);
        let from = dense.dense_bytes().unwrap_or(&[]);
        for block in 0..if run == 0 { 0 } else { outer } {
            let place = (block * parts.len() + at) * run;
            let part = &from[block * run..(block + 1) * run];
            copy::into(&mut bytes[place..place + run], part, copy::Purpose::Kernel, ledger);
        }
    }
    Ok(to.freeze().into())
}

fn strings(parts: &[Value], first: &StringTensor, axis: i64, reverse: bool) -> Result<Value, KernelError> {
    let mut shape = first.shape.clone();
    if crate::normalize_axis(axis, shape.len() + 1)? != 0 {
        return Err(KernelError::Other("strings are stacked along axis 0 only".into()));
    }
    let mut elements = Vec::new();
    let take = |part: &Value, elements: &mut Vec<Box<[u8]>>| match part {
        Value::Strings(strings) if strings.shape == first.shape => {
            elements.extend(strings.elements.iter().cloned());
            Ok(())
        }
        other => {
            Err(KernelError::Other(format!("a loop stacks strings and a {} of another shape", other.kind())))
        }
    };
    if reverse {
        parts.iter().rev().try_for_each(|part| take(part, &mut elements))?;
    } else {
        parts.iter().try_for_each(|part| take(part, &mut elements))?;
    }
    shape.insert(0, parts.len());
    Ok(Value::Strings(Arc::new(StringTensor { shape, elements })))
}

/// What a loop that ran no iteration stacked.
fn nothing(empty: &StackType, axis: i64) -> Result<Value, KernelError> {
    let dtype = empty.dtype.ok_or_else(|| {
        KernelError::Other(
            "the loop ran no iteration, and its body declares no type for what it stacks".into(),
        )
    })?;
    let mut shape = empty.shape.clone();
    let axis = crate::normalize_axis(axis, shape.len() + 1)?;
    shape.insert(axis, 0);
    if dtype == DType::String {
        return Ok(Value::Strings(Arc::new(StringTensor { shape, elements: Vec::new() })));
    }
    Ok(Tensor::new(dtype, &shape, heirloom_mem::Bytes::empty())?.into())
}
