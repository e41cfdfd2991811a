//! A global allocator that counts, for programs that report allocations per call.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

fn taken(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    PEAK.fetch_max(live, Relaxed);
}

/// The system allocator, counting; install it with `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct CountingAlloc;

/// Heap allocations (reallocations too) of this process so far; 0 where [`CountingAlloc`] is not installed.
pub fn heap_allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Heap bytes of this process that are allocated now; 0 where [`CountingAlloc`] is not installed.
pub fn heap_live_bytes() -> u64 {
    LIVE.load(Relaxed)
}

/// The most heap bytes of this process that were allocated at once since [`reset_heap_peak`]; 0 where [`CountingAlloc`] is
/// not installed.
pub fn heap_peak_bytes() -> u64 {
    PEAK.load(Relaxed)
}

/// Begins to look for the peak anew, from what is allocated now.
pub fn reset_heap_peak() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

// SAFETY: every method hands its arguments unchanged to `System`, which fulfils the contract; counting
// touches two atomics and allocates nothing.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: `ptr` came from `System` through this allocator with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        taken(new_size);
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: `ptr` came from `System` through this allocator with this layout.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
