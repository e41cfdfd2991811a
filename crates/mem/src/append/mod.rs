//! Caches that grow along one axis behind every view of them.
//!
//! A buffer holds `outer` runs of `capacity` rows. Rows are numbered from the first one that was ever appended; row `r` lies
//! at place `r % capacity` of its run. A view sees some rows in sequence and nothing else. The rows behind the *longest*
//! live view may be written, by whoever claims them, where no live view sees the rows that lay there before: that claim is
//! the only way to write. So no byte that a view can see is ever overwritten, an abandoned claim or a dropped view gives
//! its rows back, views that leave out their first rows make the buffer a ring, and a fork that comes second is told so.
//!
//! A view may begin with rows that lie elsewhere, in other buffers or in memory of others: [`AppendView::extended`] shares
//! them and goes on in a buffer of its own. Nothing is copied for it.

mod buffer;
mod slot;
mod view;
mod watermark;

/// What [`watermark`] waits on; its tests under loom have another one.
mod sync {
    pub(super) use std::sync::{Mutex, MutexGuard};
}

pub use buffer::AppendBuffer;
pub use slot::AppendSlot;
pub use view::{AppendView, Segments};

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
