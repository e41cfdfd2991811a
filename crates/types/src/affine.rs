//! The built-in affine layout.

use heirloom_mem::{DType, Tensor};

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
