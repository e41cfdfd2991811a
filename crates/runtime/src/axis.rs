//! Axes that count from either end.

use crate::KernelError;

/// The axis that ONNX's `axis` names in a tensor of `rank` axes: negative ones count from the end.
///
/// # Errors
/// [`KernelError::Range`] when it lies outside `-rank..rank`.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize, KernelError> {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if axis < 0 { axis.saturating_add(rank) } else { axis };
    match usize::try_from(at) {
        Ok(index) if at < rank => Ok(index),
        _ => Err(KernelError::Range { what: "the axis", value: axis, low: -rank, high: rank - 1 }),
    }
}
