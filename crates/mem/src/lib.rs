//! Byte regions and their owners, tensors and views, append buffers, and the ledger that counts copies.
//!
//! Everything above this crate shares bytes through [`Bytes`] and moves them through [`copy`] alone; the
//! workspace's lints forbid copying payloads elsewhere.

mod alloc;
pub mod append;
pub mod copy;
mod dtype;
mod ledger;
mod lent;
mod pool;
mod region;
mod tensor;

pub use alloc::{CountingAlloc, heap_allocations, heap_live_bytes, heap_peak_bytes, reset_heap_peak};
pub use append::{AppendBuffer, AppendSlot, AppendView, ClaimError, Segments};
pub use dtype::{DType, Element};
pub use ledger::{Counts, Ledger};
pub use lent::{LentTensor, lend};
pub use pool::Pool;
pub use region::{Bytes, BytesMut, MapError, RegionId, RegionKind};
pub use tensor::{Shape, Storage, Tensor, TensorMut, ViewError, element_count};
