//! Encoded values and models that several tests use.

use std::sync::Arc;

use heirloom::mem::{Bytes, DType, Element, Tensor};
use heirloom::runtime::KernelRegistry;
use heirloom::types::{EncodedValue, Layout, StructLayout, StructType, TensorType};

pub(crate) fn registry() -> KernelRegistry {
    KernelRegistry::new().with(heirloom::ops::KERNELS.iter().copied())
}

/// Records of `declaration` that stand for a tensor of FLOAT.
pub(crate) fn encoded(
    name: &str,
    declaration: &Arc<StructType>,
    records: Vec<u8>,
    shape: &[usize],
) -> Arc<EncodedValue> {
    Arc::new(EncodedValue {
        name: name.into(),
        layout: Layout::Struct(Arc::new(StructLayout::new(declaration.clone()).unwrap())),
        logical: Some(TensorType { dtype: DType::Float, shape: shape.iter().copied().collect() }),
        payload: Bytes::from_vec(records),
    })
}

pub(crate) fn elements<T: Element>(tensor: &Tensor) -> Vec<T> {
    tensor.as_slice::<T>().unwrap().to_vec()
}

/// Bytes of a linear congruential generator (Knuth's MMIX constants).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 24) as u8).collect()
    }

    /// Roughly normal, from -6 to 6.
    pub(crate) fn normals(&mut self, count: usize) -> Vec<f32> {
        let mut one = || (0..12).map(|_| self.next() as f32 / u32::MAX as f32).sum::<f32>() - 6.0;
        (0..count).map(|_| one()).collect()
    }
}
