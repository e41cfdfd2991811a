//! Parameters that fit given values.

use heirloom_mem::{BytesMut, DType, Ledger, Shape, Tensor, element_count};

use super::{Affine, AffineError, is_storage};
use crate::{TensorType, bits};

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
    /// The axis is one of the shape's; no block is empty.
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

impl Affine {
    /// Parameters for codes of type `storage` that stand for `values`, the elements of a tensor of type `logical`; along
    /// `axis` a scale for each index, or for each block of `block_size`. Signed codes have no zero point: the scale is
    /// the least by which all elements of its group can be held. Unsigned ones have the zero point that makes the scale
    /// least. [`encode`](Affine::encode) gives the codes.
    ///
    /// # Errors
    /// When the types, the axis or the block size are none of the layout, the values are not as many as the tensor has
    /// elements, or one is no finite number.
    pub fn fit(
        values: &[f32],
        logical: &TensorType,
        storage: DType,
        axis: Option<usize>,
        block_size: Option<usize>,
    ) -> Result<Affine, AffineError> {
        if !is_storage(storage) {
            return Err(AffineError::Storage { number: storage.onnx() });
        }
        let rank = logical.shape.len();
        if let Some(axis) = axis.filter(|&axis| axis >= rank) {
            return Err(AffineError::Axis { axis: i64::try_from(axis).unwrap_or(i64::MAX), rank });
        }
        if block_size == Some(0) {
            return Err(AffineError::BlockOfNothing);
        }
        if element_count(&logical.shape) != Some(values.len()) {
            return Err(AffineError::ValueCount {
                expected: Vec::from(&logical.shape[..]),
                actual: values.len(),
            });
        }
        if let Some(index) = values.iter().position(|v| !v.is_finite()) {
            return Err(AffineError::NotFinite { index });
        }
        let groups = Groups::new(&logical.shape, axis, block_size);
        let (low, high) = range(storage);
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
            let width = storage.bit_width().unwrap_or(8);
            let mut packed = BytesMut::zeroed((codes.len() * width as usize).div_ceil(8), &Ledger::default());
            bits::pack(&codes, width, packed.as_mut_slice());
            Tensor::new(storage, &groups.shape, packed.freeze())
        });
        let storage_fault = |_| AffineError::Storage { number: storage.onnx() };
        let zero_point = zero_point.transpose().map_err(storage_fault)?;
        let scale = Tensor::from_vec(&groups.shape, scales).map_err(storage_fault)?;
        let affine = Affine { storage, scale, zero_point, axis, block_size };
        affine.check(logical)?;
        Ok(affine)
    }
}
