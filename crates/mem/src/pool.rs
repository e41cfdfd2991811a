//! Heap buffers that are used again once nobody refers to them.

use std::sync::Arc;

use crate::region::Region;
use crate::{Bytes, BytesMut, Ledger, RegionKind, Storage, Tensor};

const CLASSES: usize = 48;
const SMALLEST: usize = 256;
/// More lent buffers are not remembered: whoever holds that many keeps them.
const LENT: usize = 256;

/// A pool of heap buffers by size class (powers of two and the halves between them).
///
/// A buffer goes back with [`give`](Pool::give). One that somebody else still refers to is remembered and
/// used again only after the last other handle is gone: the pool looks at the reference count, never at time.
pub struct Pool {
    free: [Vec<Arc<Region>>; CLASSES],
    lent: Vec<Arc<Region>>,
    free_bytes: usize,
}

/// The index and size of the smallest class that holds `len` bytes.
fn class(len: usize) -> Option<(usize, usize)> {
    let len = len.max(SMALLEST);
    let power = len.checked_next_power_of_two()?;
    let exponent = (power / SMALLEST).trailing_zeros() as usize;
    let (index, size) = if power > SMALLEST && len <= power / 4 * 3 {
        (exponent * 2 - 1, power / 4 * 3)
    } else {
        (exponent * 2, power)
    };
    (index < CLASSES).then_some((index, size))
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Pool {
        Pool { free: [const { Vec::new() }; CLASSES], lent: Vec::new(), free_bytes: 0 }
    }

    /// `len` bytes to write. They hold zeros or what an earlier user left: write every byte that will be read.
    pub fn take(&mut self, len: usize, ledger: &Ledger) -> BytesMut {
        let Some((index, size)) = class(len) else { return BytesMut::zeroed(len, ledger) };
        if self.free[index].is_empty() {
            self.reclaim();
        }
        match self.free[index].pop() {
            Some(region) => {
                self.free_bytes -= region.len();
                ledger.reuses(1);
                BytesMut::from_unique_region(region, len)
            }
            None => BytesMut::from_unique_region(Arc::new(Region::heap(size, ledger)), len),
        }
    }

    /// Takes a buffer back. While others hold it too it is only remembered.
    pub fn give(&mut self, bytes: Bytes) {
        if bytes.kind() == RegionKind::Heap {
            self.give_region(bytes.into_region());
        }
    }

    /// Takes back the buffer of a dense tensor.
    pub fn give_tensor(&mut self, tensor: Tensor) {
        if let Storage::Dense(bytes) = tensor.into_storage() {
            self.give(bytes);
        }
    }

    fn give_region(&mut self, mut region: Arc<Region>) {
        match class(region.len()) {
            Some((index, size)) if size == region.len() => {
                if Arc::get_mut(&mut region).is_some() {
                    self.free_bytes += size;
                    self.free[index].push(region);
                } else if self.lent.len() < LENT && !self.lent.iter().any(|r| Arc::ptr_eq(r, &region)) {
                    self.lent.push(region);
                }
            }
            _ => {}
        }
    }

    /// Moves the lent buffers that nobody else holds any more to the free ones.
    pub fn reclaim(&mut self) {
        let mut at = 0;
        while at < self.lent.len() {
            if Arc::get_mut(&mut self.lent[at]).is_some() {
                let region = self.lent.swap_remove(at);
                self.give_region(region);
            } else {
                at += 1;
            }
        }
    }

    /// Bytes that wait to be used again.
    pub fn free_bytes(&self) -> usize {
        self.free_bytes
    }

    /// Gives the waiting buffers back to the system.
    pub fn clear(&mut self) {
        self.free.iter_mut().for_each(Vec::clear);
        self.lent.clear();
        self.free_bytes = 0;
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} bytes free, {} buffers lent)", self.free_bytes, self.lent.len())
    }
}
