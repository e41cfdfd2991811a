//! Sparse tensors.

use heirloom_mem::{DType, Shape, Tensor};

use crate::SparseTensor;

impl SparseTensor {
    /// Whether positions ascend and lie within the shape, which reads them.
    pub(crate) fn check(&self) -> Result<(), String> {
        let dims: Vec<i64> =
            self.shape.iter().map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX)).collect();
        fitting_shape(&dims, &self.values, &self.indices)?;
        positions(&self.indices, &self.shape)
    }
}

/// The dense shape, where values and indices fit it and each other.
pub(crate) fn fitting_shape(dims: &[i64], values: &Tensor, indices: &Tensor) -> Result<Shape, String> {
    let shape: Option<Shape> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let shape = shape.filter(|shape| heirloom_mem::element_count(shape).is_some());
    let shape = shape.ok_or_else(|| format!("the shape {dims:?} is impossible"))?;
    let &[count] = values.shape() else {
        return Err(format!("`values` has the shape {:?}; it takes one axis", values.shape()));
    };
    if indices.dtype() != DType::Int64 {
        return Err(format!("`indices` is {}; it takes INT64", indices.dtype()));
    }
    if indices.shape() != [count] && indices.shape() != [count, shape.len()] {
        return Err(format!(
            "`indices` has the shape {:?}; for {count} values of {shape:?} it takes [{count}] or [{count}, {}]",
            indices.shape(),
            shape.len()
        ));
    }
    Ok(shape)
}

/// Checks that positions ascend and lie within the shape.
fn positions(indices: &Tensor, shape: &[usize]) -> Result<(), String> {
    let count = indices.shape().first().copied().unwrap_or(0);
    let total = heirloom_mem::element_count(shape).unwrap_or(0);
    let bytes = indices.dense_bytes().ok_or("`indices` is no dense tensor")?;
    let mut numbers =
        bytes.chunks_exact(8).map(|eight| i64::from_le_bytes(eight.try_into().expect("eight bytes")));
    let linear = indices.shape().len() == 1;
    let mut last: Option<usize> = None;
    for entry in 0..count {
        let position = if linear {
            numbers.next().and_then(|it| usize::try_from(it).ok()).filter(|&it| it < total)
        } else {
            shape.iter().try_fold(0usize, |sum, &extent| {
                let at = usize::try_from(numbers.next()?).ok().filter(|&at| at < extent)?;
                Some(sum * extent + at)
            })
        };
        let position = position.ok_or_else(|| format!("index {entry} lies outside of {shape:?}"))?;
        if last.is_some_and(|last| last >= position) {
            return Err(format!("index {entry} does not ascend"));
        }
        last = Some(position);
    }
    Ok(())
}
