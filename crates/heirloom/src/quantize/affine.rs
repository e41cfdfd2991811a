//! Tensors to affine codes.

use std::sync::Arc;

use heirloom_mem::{BytesMut, DType, Ledger, Shape, Tensor};
use heirloom_types::{Affine, EncodedValue, Layout, TensorType, bits};

use super::records::floats;
use super::target::AffineTarget;

/// How the elements of a tensor share parameters.
struct Groups {
    /// The parameters' shape.
    shape: Shape,
    /// Extent of the axis, elements behind it, and elements along it that share parameters.
    extent: usize,
    inner: usize,
    block: usize,
    /// Parameters along the axis; parameters differ along the other axes too where they are blocked.
    blocks: usize,
    blocked: bool,
}

impl Groups {
    fn new(shape: &[usize], axis: Option<usize>, block_size: Option<usize>) -> Groups {
        let Some(axis) = axis else {
            let block = shape.iter().product::<usize>().max(1);
            return Groups { shape: Shape::new(), extent: block, inner: 1, block, blocks: 1, blocked: false };
        };
        let (extent, inner) = (shape[axis], shape[axis + 1..].iter().product());
        match block_size {
            None => Groups {
                shape: Shape::from_slice(&[extent]),
                extent,
                inner,
                block: 1,
                blocks: extent,
                blocked: false,
            },
            Some(block) => {
                let mut parameters = Shape::from_slice(shape);
                parameters[axis] = extent.div_ceil(block);
                Groups { blocks: parameters[axis], shape: parameters, extent, inner, block, blocked: true }
            }
        }
    }

    fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The parameter of flat element `at`.
    fn of(&self, at: usize) -> usize {
        let along = at / self.inner % self.extent / self.block;
        if self.blocked {
            let outer = at / self.inner / self.extent;
            (outer * self.blocks + along) * self.inner + at % self.inner
        } else {
            along
        }
    }
}

/// The smallest and largest code.
fn range(storage: DType) -> (f32, f32) {
    match storage {
        DType::Int8 => (-128.0, 127.0),
        DType::Uint8 => (0.0, 255.0),
        DType::Int4 => (-8.0, 7.0),
        DType::Uint4 => (0.0, 15.0),
        DType::Int2 => (-2.0, 1.0),
        _ => (0.0, 3.0),
    }
}

/// The tensor as affine codes. Signed codes have no zero point: the scale is the least by which all elements can be held;
/// unsigned ones have the zero point that makes the scale least.
pub(super) fn encode(name: &str, tensor: &Tensor, target: &AffineTarget) -> Result<EncodedValue, String> {
    let shape = tensor.shape();
    let rank = shape.len();
    let axis = match target.axis {
        None => None,
        Some(axis) => {
            let normal = if axis < 0 { axis + rank as i64 } else { axis };
            let fits = usize::try_from(normal).ok().filter(|&axis| axis < rank);
            Some(fits.ok_or_else(|| format!("it has {rank} axes and no axis {axis}"))?)
        }
    };
    let values = floats(tensor, 0, tensor.len());
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        return Err(format!("element {at} is {}, which affine codes cannot represent", values[at]));
    }
    let groups = Groups::new(shape, axis, target.block_size);
    let (low, high) = range(target.storage);
    // The interval of each group, 0 within.
    let mut intervals = vec![(0.0f32, 0.0f32); groups.count()];
    for (at, &value) in values.iter().enumerate() {
        let (least, most) = &mut intervals[groups.of(at)];
        (*least, *most) = (least.min(value), most.max(value));
    }
    let signed = low < 0.0;
    let scale = |&(least, most): &(f32, f32)| {
        let scale = if signed { (most / high).max(least / low) } else { most / high - least / high };
        // A group of zeros may have any scale.
        if scale.is_normal() { scale } else { 1.0 }
    };
    let scales: Vec<f32> = intervals.iter().map(scale).collect();
    let zero_point = (!signed).then(|| {
        let pairs = intervals.iter().zip(&scales);
        let codes: Vec<u8> = pairs
            .map(|((least, _), scale)| (-least / scale).round_ties_even().clamp(low, high) as u8)
            .collect();
        let width = target.storage.bit_width().unwrap_or(8);
        let mut packed = BytesMut::zeroed((codes.len() * width as usize).div_ceil(8), &Ledger::default());
        bits::pack(&codes, width, packed.as_mut_slice());
        Tensor::new(target.storage, &groups.shape, packed.freeze())
    });
    let zero_point = zero_point.transpose().map_err(|error| error.to_string())?;
    let scale = Tensor::from_vec(&groups.shape, scales).map_err(|error| error.to_string())?;
    let affine = Affine { storage: target.storage, scale, zero_point, axis, block_size: target.block_size };
    let logical = TensorType { dtype: tensor.dtype(), shape: Shape::from_slice(shape) };
    affine.check(&logical).map_err(|error| error.to_string())?;
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
