//! The memory of one buffer, and live views of it.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::MmapMut;

use super::view::AppendView;
use super::watermark::{Refusal, Rows, Watermark};
use super::{AppendSlot, ClaimError};
use crate::{Ledger, RegionId, Tensor, copy, element_count};

/// The rows of one append buffer. Shared by its views; see the module's text for the rules.
pub struct AppendBuffer {
    ptr: NonNull<u8>,
    _map: Option<MmapMut>,
    outer: usize,
    capacity: usize,
    row_bytes: usize,
    id: RegionId,
    watermark: Watermark,
}

// SAFETY: reads go to rows that a live view sees, writes to rows that none sees, and the bookkeeping that keeps the two
// apart is behind the watermark's mutex.
unsafe impl Send for AppendBuffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for AppendBuffer {}

impl AppendBuffer {
    /// A buffer for `outer` runs of at most `capacity` rows of `row_bytes` bytes, and the empty view of it.
    /// Memory is taken page by page as rows are written, not before.
    ///
    /// # Errors
    /// When the capacity is 0 or the size overflows or cannot be had.
    pub fn with_capacity(
        outer: usize,
        capacity: usize,
        row_bytes: usize,
        ledger: &Ledger,
    ) -> Result<AppendView, ClaimError> {
        let buffer = AppendBuffer::allocate(outer, capacity, row_bytes, ledger)?;
        Ok(AppendView::new(None, Live::new(buffer, Rows { start: 0, end: 0 })))
    }

    pub(super) fn allocate(
        outer: usize,
        capacity: usize,
        row_bytes: usize,
        ledger: &Ledger,
    ) -> Result<Arc<AppendBuffer>, ClaimError> {
        let error = ClaimError::Capacity { outer, capacity, row_bytes };
        let bytes = outer.checked_mul(capacity).and_then(|n| n.checked_mul(row_bytes)).ok_or(error)?;
        if capacity == 0 || bytes > isize::MAX as usize {
            return Err(error);
        }
        let mut map = MmapMut::map_anon(bytes.max(1)).map_err(|_| error)?;
        // Huge pages would make resident memory grow by megabytes per row; the advice may be unknown to the system.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::NoHugePage);
        let ptr = NonNull::from(&mut map[..]).cast::<u8>();
        ledger.cache_allocations(1);
        ledger.cache_allocated_bytes(bytes);
        let (id, watermark) = (RegionId::next(), Watermark::new());
        Ok(Arc::new(AppendBuffer { ptr, _map: Some(map), outer, capacity, row_bytes, id, watermark }))
    }

    /// A buffer without room, for views whose rows all lie elsewhere.
    pub(super) fn none(outer: usize, row_bytes: usize) -> Arc<AppendBuffer> {
        let (ptr, id, watermark) = (NonNull::dangling(), RegionId::next(), Watermark::new());
        Arc::new(AppendBuffer { ptr, _map: None, outer, capacity: 0, row_bytes, id, watermark })
    }

    /// A new buffer of `capacity` rows along `axis` of `tensor`, holding the tensor's rows (a counted copy of a cache).
    ///
    /// # Errors
    /// When the tensor has more rows, has no such axis, or the size overflows or cannot be had.
    pub fn copied(
        tensor: &Tensor,
        axis: usize,
        capacity: usize,
        ledger: &Ledger,
    ) -> Result<AppendView, ClaimError> {
        let len = tensor.shape().get(axis).copied().unwrap_or(usize::MAX);
        let (outer, row_bytes) = AppendBuffer::extents(tensor, axis).unwrap_or((usize::MAX, usize::MAX));
        let mut slot = Self::with_capacity(outer, capacity, row_bytes, ledger)?.claim(len)?;
        match tensor.append_view() {
            Some((view, at)) if at == axis => {
                for run in 0..outer {
                    slot.fill_counted(run, view.segments(run), copy::Purpose::Cache, ledger);
                }
            }
            _ => {
                let dense = copy::to_dense(tensor, copy::Purpose::Kernel, ledger);
                let bytes = dense.dense_bytes().unwrap_or(&[]);
                for (run, from) in (0..outer).zip(bytes.chunks_exact((len * row_bytes).max(1))) {
                    slot.fill_counted(run, std::iter::once(from), copy::Purpose::Cache, ledger);
                }
            }
        }
        Ok(slot.into_view())
    }

    /// Runs before `axis` of `tensor`, and bytes of a row behind it; `None` where there is no such axis, elements are no
    /// whole bytes, or a size overflows.
    pub(super) fn extents(tensor: &Tensor, axis: usize) -> Option<(usize, usize)> {
        let outer = element_count(tensor.shape().get(..axis)?)?;
        let row = element_count(tensor.shape().get(axis + 1..)?)?;
        tensor.dtype().bit_width().filter(|w| w % 8 == 0)?;
        Some((outer, tensor.dtype().payload_bytes(row)?))
    }

    pub(super) fn outer(&self) -> usize {
        self.outer
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub(super) fn id(&self) -> RegionId {
        self.id
    }

    /// Offsets and lengths in bytes of `rows` of `run`: two stretches where they go round the end of the run.
    fn stretches(&self, run: usize, rows: Rows) -> [(usize, usize); 2] {
        let len = rows.end - rows.start;
        assert!(run < self.outer && len <= self.capacity, "rows of the buffer");
        if len == 0 {
            return [(0, 0); 2];
        }
        let first = rows.start % self.capacity;
        let until_end = len.min(self.capacity - first);
        let run = run * self.capacity;
        let bytes = |row: usize, rows: usize| ((run + row) * self.row_bytes, rows * self.row_bytes);
        [bytes(first, until_end), bytes(0, len - until_end)]
    }
}

/// Rows of a buffer that are kept as they are while this lives.
pub(super) struct Live {
    buffer: Arc<AppendBuffer>,
    rows: Rows,
}

impl Live {
    /// `rows` must be none, or seen by another live view.
    fn new(buffer: Arc<AppendBuffer>, rows: Rows) -> Live {
        buffer.watermark.enter(rows);
        Live { buffer, rows }
    }

    /// No rows of a buffer, at its begin.
    pub(super) fn nothing(buffer: Arc<AppendBuffer>) -> Live {
        Live::new(buffer, Rows { start: 0, end: 0 })
    }

    pub(super) fn buffer(&self) -> &AppendBuffer {
        &self.buffer
    }

    pub(super) fn len(&self) -> usize {
        self.rows.end - self.rows.start
    }

    /// The number of the row behind them.
    pub(super) fn end(&self) -> usize {
        self.rows.end
    }

    /// Some of these rows, counted from the first.
    pub(super) fn part(&self, start: usize, end: usize) -> Live {
        assert!(start <= end && end <= self.len(), "rows of the view");
        let rows = Rows { start: self.rows.start + start, end: self.rows.start + end };
        Live::new(self.buffer.clone(), rows)
    }

    /// The rows of `run`, in order; the second stretch is empty unless they go round the end of the run.
    pub(super) fn stretches(&self, run: usize) -> [&[u8]; 2] {
        self.buffer.stretches(run, self.rows).map(|(offset, len)| {
            // SAFETY: at most `capacity` rows of the run lie in the map, which `self.buffer` keeps alive (`len` is 0 where
            // there is no map); they are initialized (zero, or written before this view existed), and rows that a live
            // view sees are never written.
            unsafe { std::slice::from_raw_parts(self.buffer.ptr.as_ptr().add(offset), len) }
        })
    }

    pub(super) fn address(&self) -> usize {
        let [(offset, _), _] = self.buffer.stretches(0, self.rows);
        self.buffer.ptr.as_ptr().addr() + offset
    }

    pub(super) fn claim(&self, rows: usize) -> Result<Claim, Refusal> {
        let granted = self.buffer.watermark.claim(self.rows, rows, self.buffer.capacity)?;
        let live = Live { buffer: self.buffer.clone(), rows: granted };
        Ok(Claim { live, start: self.rows.end })
    }
}

impl Clone for Live {
    fn clone(&self) -> Live {
        Live::new(self.buffer.clone(), self.rows)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.buffer.watermark.leave(self.rows);
    }
}

/// Rows behind a view that nobody else sees; only the holder writes them.
pub(super) struct Claim {
    live: Live,
    /// The first claimed row.
    start: usize,
}

impl Claim {
    pub(super) fn rows(&self) -> usize {
        self.live.rows.end - self.start
    }

    pub(super) fn buffer(&self) -> &AppendBuffer {
        &self.live.buffer
    }

    /// The claimed rows of `run`, to write; two stretches where they go round the end of the run.
    pub(super) fn stretches_mut(&mut self, run: usize) -> [&mut [u8]; 2] {
        let buffer = &self.live.buffer;
        buffer.stretches(run, Rows { start: self.start, end: self.live.rows.end }).map(|(offset, len)| {
            // SAFETY: the rows lie in the map. No live view sees them: the claim was granted to the longest view, no live
            // view saw the rows that lay there before, and it stands in the list, so no second claim covers them. The two
            // stretches do not overlap, `&mut self` keeps them to one borrow at a time, and all bytes are initialized.
            unsafe { std::slice::from_raw_parts_mut(buffer.ptr.as_ptr().add(offset), len) }
        })
    }

    /// The view of the rows that were there and the claimed ones.
    pub(super) fn into_live(self) -> Live {
        self.live
    }
}

impl std::fmt::Debug for AppendBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AppendBuffer({} × {} rows of {} bytes)", self.outer, self.capacity, self.row_bytes)
    }
}

impl std::fmt::Debug for AppendSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AppendSlot({} rows)", self.rows())
    }
}
