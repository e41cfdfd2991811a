//! The built-in affine layout: integer codes that stand for `(code - zero_point) * scale`.

mod decode;
mod encode;
mod fit;
mod operators;
mod parameters;

pub use operators::{DequantizeLinear, NBitWeights, NotAffine};

use heirloom_mem::{DType, Tensor};
use heirloom_proto::{AffineLayoutProto, ExternalResolver};

use crate::path::{FaultList, Path};
use crate::{TensorError, TensorType, TypeError, tensor_from_proto, tensor_to_proto};

/// Parameters of an affine-quantized value: `(code - zero_point) * scale`.
#[derive(Clone, Debug)]
pub struct Affine {
    /// INT8, UINT8, INT4, UINT4, INT2 or UINT2.
    pub storage: DType,
    /// Scalar (per tensor), one per index of `axis`, or one per block along it.
    pub scale: Tensor,
    /// Of `scale`'s shape and the storage type; absent means 0.
    pub zero_point: Option<Tensor>,
    /// The normalized axis; absent means per tensor.
    pub axis: Option<usize>,
    /// Elements per block along the axis.
    pub block_size: Option<usize>,
}

/// Equal parameters to the bit. A zero point that is absent differs from one that is 0 everywhere.
impl PartialEq for Affine {
    fn eq(&self, other: &Affine) -> bool {
        let same = |a: &Tensor, b: &Tensor| {
            a.dtype() == b.dtype() && a.shape() == b.shape() && a.dense_bytes() == b.dense_bytes()
        };
        let zero_points = match (&self.zero_point, &other.zero_point) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        let form = |affine: &Affine| (affine.storage, affine.axis, affine.block_size);
        form(self) == form(other) && same(&self.scale, &other.scale) && zero_points
    }
}

/// Why an affine layout is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AffineError {
    /// Codes of a type that the layout does not have.
    #[error(
        "codes are INT8, UINT8, INT4, UINT4, INT2 or UINT2, not type {number}; use a struct type for others"
    )]
    Storage {
        /// ONNX's number of the type.
        number: i32,
    },
    /// No scale.
    #[error("there is no scale")]
    NoScale,
    /// A scale of a type that DequantizeLinear does not take.
    #[error("the scale is FLOAT, FLOAT16, BFLOAT16 or FLOAT8E8M0, not {actual}")]
    ScaleType {
        /// The scale's type.
        actual: DType,
    },
    /// A scale of a shape that does not fit.
    #[error("the scale has the shape {actual:?}, where {expected}")]
    ScaleShape {
        /// What must hold.
        expected: String,
        /// The scale's shape.
        actual: Vec<usize>,
    },
    /// Zero points of another type than the codes.
    #[error("the zero point is {actual}; it must be of the codes' type {expected}")]
    ZeroPointType {
        /// The codes' type.
        expected: DType,
        /// The zero point's type.
        actual: DType,
    },
    /// Zero points of another shape than the scales.
    #[error("the zero point has the shape {actual:?}; it must have the scale's, {expected:?}")]
    ZeroPointShape {
        /// The scale's shape.
        expected: Vec<usize>,
        /// The zero point's shape.
        actual: Vec<usize>,
    },
    /// Parameters with gaps between their elements.
    #[error("scales and zero points must be dense in memory")]
    Gaps,
    /// An axis that the tensor does not have.
    #[error("axis {axis} does not exist in a tensor of rank {rank}")]
    Axis {
        /// The declared axis.
        axis: i64,
        /// The tensor's rank.
        rank: usize,
    },
    /// Blocks without an axis.
    #[error("`block_size` needs an `axis`")]
    BlockWithoutAxis,
    /// Blocks of no element.
    #[error("`block_size` 0 is no size; leave it out for one scale per index of the axis")]
    BlockOfNothing,
    /// A block size that does not give the number of blocks that the scale has.
    #[error("`block_size` {block_size} does not divide {extent} elements into {blocks} blocks; {}", range(*low, *high))]
    BlockSize {
        /// The declared size.
        block_size: u64,
        /// The tensor's extent along the axis.
        extent: usize,
        /// The scale's extent along the axis.
        blocks: usize,
        /// The least size that does.
        low: u64,
        /// The greatest size that does; `None`: any.
        high: Option<u64>,
    },
    /// A value to encode that no code stands for.
    #[error("element {index} is no finite number, which affine codes cannot represent")]
    NotFinite {
        /// Its place.
        index: usize,
    },
    /// Values to encode that are too few or too many.
    #[error("a tensor of shape {expected:?} does not have {actual} elements")]
    ValueCount {
        /// The logical shape.
        expected: Vec<usize>,
        /// How many were given.
        actual: usize,
    },
    /// No logical type.
    #[error("an affine value needs a logical type: a tensor with concrete extents")]
    NoLogicalType,
    /// A logical type that DequantizeLinear does not give.
    #[error("the logical type is FLOAT, FLOAT16 or BFLOAT16, not {actual}")]
    LogicalType {
        /// The declared element type.
        actual: DType,
    },
}

fn range(low: u64, high: Option<u64>) -> String {
    match high {
        Some(high) if low > high => "no size does".into(),
        Some(high) if low == high => format!("{low} does"),
        Some(high) => format!("sizes from {low} to {high} do"),
        None => format!("sizes from {low} on do"),
    }
}

/// The types that codes may have.
pub(crate) fn is_storage(dtype: DType) -> bool {
    use DType::{Int2, Int4, Int8, Uint2, Uint4, Uint8};
    matches!(dtype, Int8 | Uint8 | Int4 | Uint4 | Int2 | Uint2)
}

/// What an affine message says of its axis, before the rank is known.
pub(crate) struct Declared {
    affine: Affine,
    axis: Option<i64>,
    block_size: Option<u64>,
}

impl Declared {
    /// Reads the message. Every fault that shows without the logical type is noted.
    pub(crate) fn read(
        proto: &AffineLayoutProto,
        files: Option<&ExternalResolver>,
        path: &Path<'_>,
        faults: &mut FaultList,
    ) -> Option<Declared> {
        let number = proto.storage_type().0;
        let storage = DType::from_onnx(number).filter(|&dtype| is_storage(dtype));
        let storage =
            faults.note(&path.field("storage_type"), storage.ok_or(AffineError::Storage { number }));
        let mut tensor = |proto, name| {
            let tensor: Result<Tensor, TensorError> = tensor_from_proto(proto, files);
            faults.note(&path.field(name), tensor)
        };
        let scale = proto.scale().map(|scale| tensor(scale, "scale"));
        let zero_point = proto.zero_point().map(|zero_point| tensor(zero_point, "zero_point"));
        let (axis, block_size) =
            (proto.has_axis().then(|| proto.axis()), proto.has_block_size().then(|| proto.block_size()));
        if scale.is_none() {
            faults.add(path, AffineError::NoScale);
        }
        let zero_point = match zero_point {
            Some(None) => return None,
            Some(found) => found,
            None => None,
        };
        let affine = Affine { storage: storage?, scale: scale??, zero_point, axis: None, block_size: None };
        Some(Declared { affine, axis, block_size })
    }

    /// The layout for a logical tensor.
    pub(crate) fn resolve(self, logical: &TensorType) -> Result<Affine, AffineError> {
        let Declared { mut affine, axis, block_size } = self;
        let rank = logical.shape.len();
        if let Some(axis) = axis {
            let signed = i64::try_from(rank).unwrap_or(i64::MAX);
            let normalized = if axis < 0 { axis.checked_add(signed) } else { Some(axis) };
            let normalized =
                normalized.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < rank);
            affine.axis = Some(normalized.ok_or(AffineError::Axis { axis, rank })?);
        }
        if let Some(size) = block_size {
            if axis.is_none() {
                return Err(AffineError::BlockWithoutAxis);
            }
            // Sizes beyond the address space are as good as its end: larger than any extent.
            affine.block_size = Some(usize::try_from(size).unwrap_or(usize::MAX));
        }
        affine.check(logical)?;
        Ok(affine)
    }
}

impl Affine {
    /// Whether the parameters fit each other and the logical tensor, as QuantizeLinear and DequantizeLinear define.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, logical: &TensorType) -> Result<(), AffineError> {
        let Affine { storage, scale, zero_point, axis, block_size } = self;
        if !is_storage(*storage) {
            return Err(AffineError::Storage { number: storage.onnx() });
        }
        if !matches!(logical.dtype, DType::Float | DType::Float16 | DType::BFloat16) {
            return Err(AffineError::LogicalType { actual: logical.dtype });
        }
        let actual = scale.dtype();
        if !matches!(actual, DType::Float | DType::Float16 | DType::BFloat16 | DType::Float8E8M0) {
            return Err(AffineError::ScaleType { actual });
        }
        let wrong =
            |expected: String| Err(AffineError::ScaleShape { expected, actual: Vec::from(scale.shape()) });
        match (axis, block_size) {
            (None, Some(_)) => return Err(AffineError::BlockWithoutAxis),
            (None, None) if !scale.shape().is_empty() => {
                return wrong("without an axis it must be a scalar".into());
            }
            (None, None) => {}
            (Some(axis), _) if *axis >= logical.shape.len() => {
                let axis = i64::try_from(*axis).unwrap_or(i64::MAX);
                return Err(AffineError::Axis { axis, rank: logical.shape.len() });
            }
            (Some(axis), None) => {
                let extent = logical.shape[*axis];
                if scale.shape() != [extent] {
                    return wrong(format!("one scale for each index of axis {axis} is [{extent}]"));
                }
            }
            (Some(axis), Some(size)) => self.check_blocks(logical, *axis, *size)?,
        }
        if let Some(zero_point) = zero_point {
            if zero_point.dtype() != *storage {
                return Err(AffineError::ZeroPointType { expected: *storage, actual: zero_point.dtype() });
            }
            if zero_point.shape() != scale.shape() {
                let (expected, actual) = (Vec::from(scale.shape()), Vec::from(zero_point.shape()));
                return Err(AffineError::ZeroPointShape { expected, actual });
            }
        }
        let dense = |tensor: &Tensor| tensor.dense_bytes().is_some();
        if !dense(scale) || !zero_point.as_ref().is_none_or(dense) {
            return Err(AffineError::Gaps);
        }
        Ok(())
    }

    /// `block_size` lies within `[ceil(D / S), ceil(D / (S - 1)) - 1]` for D elements and S scales along the axis.
    fn check_blocks(&self, logical: &TensorType, axis: usize, size: usize) -> Result<(), AffineError> {
        let (shape, scales) = (&logical.shape, self.scale.shape());
        if size == 0 {
            return Err(AffineError::BlockOfNothing);
        }
        let same = |(i, (a, b)): (usize, (&usize, &usize))| i == axis || a == b;
        if scales.len() != shape.len() || !shape.iter().zip(scales).enumerate().all(same) {
            let expected = format!("blocks along axis {axis} need {shape:?} with the number of blocks there");
            return Err(AffineError::ScaleShape { expected, actual: Vec::from(scales) });
        }
        let (extent, blocks) = (shape[axis], scales[axis]);
        let (size, wide) = (size as u64, |n: usize| n as u64);
        let low = if blocks == 0 { 1 } else { wide(extent).div_ceil(wide(blocks)) };
        // No blocks are as many as no elements fill; one block holds any number.
        let high = match blocks {
            0 if extent == 0 => None,
            0 => Some(0),
            1 => None,
            _ => Some(wide(extent).div_ceil(wide(blocks - 1)).saturating_sub(1)),
        };
        if size < low || high.is_some_and(|high| size > high) {
            return Err(AffineError::BlockSize { block_size: size, extent, blocks, low, high });
        }
        Ok(())
    }

    /// Bytes of the codes of `elements` elements; `None` on overflow.
    pub fn payload_bytes(&self, elements: usize) -> Option<usize> {
        self.storage.payload_bytes(elements)
    }

    /// The layout as a message; scales and zero points share their bytes.
    ///
    /// # Errors
    /// When a parameter has gaps between its elements.
    pub fn to_proto(&self) -> Result<AffineLayoutProto, TypeError> {
        let mut proto = AffineLayoutProto::new();
        proto.set_storage_type(self.storage.onnx().into());
        proto.set_scale(tensor_to_proto(&self.scale, "")?);
        if let Some(zero_point) = &self.zero_point {
            proto.set_zero_point(tensor_to_proto(zero_point, "")?);
        }
        if let Some(axis) = self.axis {
            proto.set_axis(axis as i64);
        }
        if let Some(size) = self.block_size {
            proto.set_block_size(size as u64);
        }
        Ok(proto)
    }
}
