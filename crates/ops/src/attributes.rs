//! What kernels check about a node's attributes before they are built.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError};

/// Refuses attributes that the kernel does not know: none is ever ignored.
pub(crate) fn only(cx: &BuildCx<'_>, known: &[&str]) -> Result<(), BuildError> {
    match cx.node.attributes.iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, value)) => {
            Err(unsupported(name, format!("{value:?}"), "the operator has no such attribute here"))
        }
    }
}

/// An attribute with a value that is not allowed or not supported.
pub(crate) fn unsupported(name: &str, value: impl ToString, reason: &str) -> BuildError {
    BuildError::Unsupported { name: name.into(), value: value.to_string(), reason: reason.into() }
}

/// The element type that the attribute `name` gives by its number; `None` where there is none.
pub(crate) fn dtype(cx: &BuildCx<'_>, name: &str) -> Result<Option<DType>, BuildError> {
    let Some(number) = cx.node.attributes.opt_int(name)? else { return Ok(None) };
    match i32::try_from(number).ok().and_then(DType::from_onnx) {
        Some(dtype) => Ok(Some(dtype)),
        None => Err(unsupported(name, number, "it is no element type")),
    }
}

/// Whether a kernel for plain tensors takes the node as far as is known before any call: the types of inputs `0..count`.
pub(crate) fn takes(cx: &BuildCx<'_>, count: usize, fits: fn(DType) -> bool) -> bool {
    cx.plain_inputs() && cx.inputs.iter().take(count).flatten().filter_map(|input| input.dtype).all(fits)
}

/// The floating-point types that Rust computes with.
pub(crate) fn is_real(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Float16 | DType::BFloat16 | DType::Double)
}

/// The integer types of whole bytes.
pub(crate) fn is_integer(dtype: DType) -> bool {
    dtype.is_integer() && dtype.bit_width().is_some_and(|bits| bits >= 8)
}

/// All number types that Rust computes with.
pub(crate) fn is_number(dtype: DType) -> bool {
    is_real(dtype) || is_integer(dtype)
}
