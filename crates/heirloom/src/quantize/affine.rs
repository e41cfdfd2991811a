//! Tensors to affine codes.

use std::sync::Arc;

use heirloom_mem::{BytesMut, Ledger, Shape, Tensor};
use heirloom_types::{Affine, EncodedValue, Layout, TensorType};

use super::records::floats;
use super::target::AffineTarget;

/// The tensor as affine codes, with the parameters of [`Affine::fit`].
pub(super) fn encode(name: &str, tensor: &Tensor, target: &AffineTarget) -> Result<EncodedValue, String> {
    let rank = tensor.shape().len();
    let axis = match target.axis {
        None => None,
        Some(axis) => {
            let normal = if axis < 0 { axis + rank as i64 } else { axis };
            let fits = usize::try_from(normal).ok().filter(|&axis| axis < rank);
            Some(fits.ok_or_else(|| format!("it has {rank} axes and no axis {axis}"))?)
        }
    };
    let values = floats(tensor, 0, tensor.len());
    let logical = TensorType { dtype: tensor.dtype(), shape: Shape::from_slice(tensor.shape()) };
    let affine = Affine::fit(&values, &logical, target.storage, axis, target.block_size);
    let affine = affine.map_err(|error| error.to_string())?;
    let bytes = affine.payload_bytes(values.len()).ok_or("its codes exceed the address space")?;
    let mut codes = BytesMut::zeroed(bytes, &Ledger::default());
    affine.encode(&logical, &values, codes.as_mut_slice()).map_err(|error| error.to_string())?;
    Ok(EncodedValue {
        name: name.into(),
        layout: Layout::Affine(Arc::new(affine)),
        logical: Some(logical),
        payload: codes.freeze(),
    })
}
