//! Bytes that their owner lends for one call.

use std::sync::Arc;

use crate::region::Region;
use crate::{Bytes, DType, Shape, ViewError, element_count};

/// A dense tensor whose bytes somebody lends: it cannot outlive them, and nothing that keeps values takes one.
#[derive(Clone, Debug)]
pub struct LentTensor<'a> {
    dtype: DType,
    shape: Shape,
    bytes: &'a [u8],
}

impl<'a> LentTensor<'a> {
    /// The tensor in these bytes, which stay where they are.
    ///
    /// # Errors
    /// When the bytes are not as many as the elements take.
    pub fn new(dtype: DType, shape: &[usize], bytes: &'a [u8]) -> Result<LentTensor<'a>, ViewError> {
        let expected = element_count(shape).and_then(|n| dtype.payload_bytes(n));
        let shape = Shape::from_slice(shape);
        if expected != Some(bytes.len()) {
            return Err(ViewError::Length { dtype, shape, expected, actual: bytes.len() });
        }
        Ok(LentTensor { dtype, shape, bytes })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Calls `f` with the slices as [`Bytes`] of kind [`RegionKind::Lent`](crate::RegionKind::Lent), without a copy. `f` must drop every handle on
/// them before it returns, on all threads: what it returns, or leaves anywhere, must not share them. Callers check that
/// with [`Bytes::kind`] and refuse.
///
/// # Aborts
/// When a handle is left nevertheless, also while unwinding: the owner may free the bytes as soon as this returns, and
/// nothing else could stop the handle from being used.
pub fn lend<R>(slices: &[&[u8]], f: impl FnOnce(Vec<Bytes>) -> R) -> R {
    struct Guard(Vec<Arc<Region>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            if self.0.iter_mut().any(|region| Arc::get_mut(region).is_none()) {
                abort();
            }
        }
    }
    let guard = Guard(slices.iter().map(|slice| Arc::new(Region::lent(slice))).collect());
    let bytes = guard.0.iter().map(|region| Bytes::from_region(region.clone(), region.len())).collect();
    f(bytes)
}

#[cold]
#[allow(clippy::print_stderr)]
fn abort() -> ! {
    eprintln!("heirloom: bytes that were lent for one call are still held after it");
    std::process::abort()
}
