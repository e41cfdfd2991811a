//! What the operators on sequences have in common.

use std::sync::Arc;

use heirloom_runtime::{KernelError, RunCx};
use heirloom_types::Value;

use crate::integers;

fn wrong(index: usize, value: Option<&Value>) -> KernelError {
    match value {
        None => KernelError::MissingInput { index },
        Some(value) => {
            KernelError::InputType { index, expected: "a sequence".into(), actual: value.kind().into() }
        }
    }
}

/// The elements of input `index`.
pub(crate) fn elements<'c>(cx: &'c RunCx<'_>, index: usize) -> Result<&'c [Value], KernelError> {
    match cx.value(index) {
        Some(Value::Sequence(elements)) => Ok(elements),
        other => Err(wrong(index, other)),
    }
}

/// Input `index` to change: its own list where nobody else holds it, else a list of the same handles.
pub(crate) fn take(cx: &mut RunCx<'_>, index: usize) -> Result<Vec<Value>, KernelError> {
    match cx.take(index) {
        Some(Value::Sequence(elements)) => Ok(Arc::unwrap_or_clone(elements)),
        other => Err(wrong(index, other.as_ref())),
    }
}

/// The place that the scalar input `index` names among `len`; negative ones count from the end.
pub(crate) fn place(cx: &RunCx<'_>, index: usize, len: usize) -> Result<usize, KernelError> {
    let list = integers::list(cx, index)?;
    let [value] = list[..] else {
        return Err(KernelError::Other(format!("a position has one element, not {}", list.len())));
    };
    Ok(crate::onnx::gather::places(&[value], len)?[0])
}
