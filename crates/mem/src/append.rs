//! Buffers that grow along one axis behind every view of them.
//!
//! A buffer holds `outer` runs of `capacity` rows. A view sees the first `len` rows of each run and nothing behind
//! them. The rows behind the *longest* live view may be written, by whoever claims them: that claim is the only
//! way to write, and it succeeds only for a view that is the longest one. So no byte that a view can see is ever
//! overwritten, an abandoned claim or a dropped view gives its rows back, and a fork that comes second is told so.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;

use crate::{Ledger, RegionId, Tensor, copy, element_count};

/// The rows of one append buffer. Shared by its views; see the module's text for the rules.
pub struct AppendBuffer {
    ptr: NonNull<u8>,
    _map: MmapMut,
    outer: usize,
    capacity: usize,
    row_bytes: usize,
    id: RegionId,
    live: Mutex<Vec<Live>>,
}

/// How many views (and claims) see exactly `len` rows.
struct Live {
    len: usize,
    count: usize,
}

// SAFETY: reads go to rows below a live view's length, writes to rows above every live view's length, and the
// bookkeeping that keeps the two apart is behind the mutex.
unsafe impl Send for AppendBuffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for AppendBuffer {}

/// Why rows could not be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Another view of the buffer is longer: its rows stand where the new ones would go.
    #[error("another view of this cache already holds {longest} rows, this one {len}")]
    Taken {
        /// Rows of the view that wanted to append.
        len: usize,
        /// Rows of the longest live view.
        longest: usize,
    },
    /// The buffer is full.
    #[error("the cache holds {len} of {capacity} rows, {rows} more do not fit")]
    Full {
        /// Rows of the view that wanted to append.
        len: usize,
        /// Rows that wanted to be appended.
        rows: usize,
        /// Rows that the buffer can hold.
        capacity: usize,
    },
    /// The requested buffer has no rows or its size overflows.
    #[error("a cache of {outer} runs of {capacity} rows of {row_bytes} bytes cannot be made")]
    Capacity {
        /// Runs.
        outer: usize,
        /// Rows per run.
        capacity: usize,
        /// Bytes per row.
        row_bytes: usize,
    },
}

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
        let live = Mutex::new(Vec::with_capacity(8));
        let buffer = AppendBuffer { ptr, _map: map, outer, capacity, row_bytes, id: RegionId::next(), live };
        Ok(AppendView::register(&Arc::new(buffer), 0))
    }

    /// A new buffer of `capacity` rows along `axis` of `tensor`, holding the tensor's rows (a counted copy of a cache).
    ///
    /// # Errors
    /// When the tensor has more rows, has no such axis, or the size overflows or cannot be had.
    #[allow(clippy::disallowed_methods)]
    pub fn copied(
        tensor: &Tensor,
        axis: usize,
        capacity: usize,
        ledger: &Ledger,
    ) -> Result<AppendView, ClaimError> {
        let len = tensor.shape().get(axis).copied().unwrap_or(usize::MAX);
        let (before, row) =
            (&tensor.shape()[..axis.min(tensor.shape().len())], tensor.shape().get(axis + 1..));
        let outer = element_count(before).unwrap_or(usize::MAX);
        let row_bytes =
            row.and_then(element_count).filter(|_| tensor.dtype().bit_width().is_some_and(|w| w % 8 == 0));
        let row_bytes = row_bytes.and_then(|n| tensor.dtype().payload_bytes(n)).unwrap_or(usize::MAX);
        let mut slot = Self::with_capacity(outer, capacity, row_bytes, ledger)?.claim(len)?;
        match tensor.append_view() {
            Some((view, at)) if at == axis => {
                for run in 0..outer {
                    copy::into(slot.run_mut(run), view.run(run), copy::Purpose::Cache, ledger);
                }
            }
            _ => {
                let dense = copy::to_dense(tensor, copy::Purpose::Kernel, ledger);
                let bytes = dense.dense_bytes().unwrap_or(&[]);
                for (run, from) in (0..outer).zip(bytes.chunks_exact((len * row_bytes).max(1))) {
                    copy::into(slot.run_mut(run), from, copy::Purpose::Cache, ledger);
                }
            }
        }
        Ok(slot.view)
    }

    fn live(&self) -> MutexGuard<'_, Vec<Live>> {
        // The list is valid between any two statements that change it, so a panic elsewhere does not spoil it.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(live: &mut Vec<Live>, len: usize) {
        match live.binary_search_by_key(&len, |l| l.len) {
            Ok(at) => live[at].count += 1,
            Err(at) => live.insert(at, Live { len, count: 1 }),
        }
    }

    fn leave(&self, len: usize) {
        let mut live = self.live();
        if let Ok(at) = live.binary_search_by_key(&len, |l| l.len) {
            live[at].count -= 1;
            if live[at].count == 0 {
                live.remove(at);
            }
        }
    }

    fn row_offset(&self, run: usize, row: usize) -> usize {
        assert!(run < self.outer && row <= self.capacity, "a row of the buffer");
        (run * self.capacity + row) * self.row_bytes
    }
}

/// A view of the first `len` rows of every run of an append buffer. It keeps the buffer alive, and what it sees
/// never changes.
pub struct AppendView {
    buffer: Arc<AppendBuffer>,
    len: usize,
}

impl AppendView {
    fn register(buffer: &Arc<AppendBuffer>, len: usize) -> AppendView {
        AppendBuffer::enter(&mut buffer.live(), len);
        AppendView { buffer: buffer.clone(), len }
    }

    /// Rows that the view sees.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view sees no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Runs of the buffer.
    pub fn outer(&self) -> usize {
        self.buffer.outer
    }

    /// Rows that each run can hold.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.buffer.row_bytes
    }

    /// The region of the buffer, to prove that two values share memory.
    pub fn region_id(&self) -> RegionId {
        self.buffer.id
    }

    /// The address of the first row of the first run.
    pub fn address(&self) -> usize {
        self.buffer.ptr.as_ptr().addr()
    }

    /// The visible rows of run `run`.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn run(&self, run: usize) -> &[u8] {
        let offset = self.buffer.row_offset(run, 0);
        // SAFETY: `len <= capacity` rows of the run lie in the map, which `self.buffer` keeps alive; they are
        // initialized (zero or written before this view existed), and a live view's rows are never written.
        unsafe {
            std::slice::from_raw_parts(self.buffer.ptr.as_ptr().add(offset), self.len * self.buffer.row_bytes)
        }
    }

    /// A view of the first `len` rows of the same buffer.
    ///
    /// # Panics
    /// When this view sees fewer rows.
    pub fn truncated(&self, len: usize) -> AppendView {
        assert!(len <= self.len, "a truncated view is no longer than the view");
        AppendView::register(&self.buffer, len)
    }

    /// The right to write `rows` rows behind this view.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] when a longer view is alive, [`ClaimError::Full`] when they do not fit.
    pub fn claim(&self, rows: usize) -> Result<AppendSlot, ClaimError> {
        let buffer = &self.buffer;
        let full = ClaimError::Full { len: self.len, rows, capacity: buffer.capacity };
        let end = self.len.checked_add(rows).filter(|&end| end <= buffer.capacity).ok_or(full)?;
        let mut live = buffer.live();
        let longest = live.last().map_or(0, |l| l.len);
        if longest > self.len {
            return Err(ClaimError::Taken { len: self.len, longest });
        }
        AppendBuffer::enter(&mut live, end);
        drop(live);
        Ok(AppendSlot { view: AppendView { buffer: buffer.clone(), len: end }, start: self.len })
    }
}

impl Clone for AppendView {
    fn clone(&self) -> AppendView {
        AppendView::register(&self.buffer, self.len)
    }
}

impl Drop for AppendView {
    fn drop(&mut self) {
        self.buffer.leave(self.len);
    }
}

impl std::fmt::Debug for AppendView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AppendBuffer { outer, capacity, row_bytes, .. } = *self.buffer;
        write!(f, "AppendView({outer} × {} of {capacity} rows of {row_bytes} bytes)", self.len)
    }
}

/// Claimed rows: nobody sees them, and only the holder writes them. Dropping the slot gives them back.
#[derive(Debug)]
pub struct AppendSlot {
    view: AppendView,
    start: usize,
}

impl AppendSlot {
    /// Rows claimed.
    pub fn rows(&self) -> usize {
        self.view.len - self.start
    }

    /// The claimed rows of run `run`, to write. They hold anything: write every byte.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn run_mut(&mut self, run: usize) -> &mut [u8] {
        let len = self.rows() * self.view.row_bytes();
        let offset = self.view.buffer.row_offset(run, self.start);
        // SAFETY: rows `start..len` lie in the map; no live view sees them (the claim was granted to the longest
        // view and stands in the list of live views, so no second claim covers them); `&mut self` keeps them to
        // one borrow at a time; all bytes are initialized.
        unsafe { std::slice::from_raw_parts_mut(self.view.buffer.ptr.as_ptr().add(offset), len) }
    }

    /// Writes claimed row `row` of run `run`. [`AppendSlot::commit`] counts the bytes.
    ///
    /// # Panics
    /// When there is no such row or `bytes` is not as long as one.
    #[allow(clippy::disallowed_methods)]
    pub fn write_row(&mut self, run: usize, row: usize, bytes: &[u8]) {
        let len = self.view.row_bytes();
        self.run_mut(run)[row * len..(row + 1) * len].copy_from_slice(bytes);
    }

    /// The view that sees the claimed rows too. All of them must have been written.
    pub fn commit(self, ledger: &Ledger) -> AppendView {
        ledger.appended_bytes(self.rows() * self.view.row_bytes() * self.view.outer());
        self.view
    }
}
