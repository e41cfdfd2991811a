//! What a decoder that comes with a file may still use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heirloom_mem::Ledger;

use crate::KernelError;

/// Steps left, and the most bytes that may be allocated.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: AtomicU64,
    limit: u64,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(steps: u64, bytes: u64) -> Budget {
        Budget { steps: AtomicU64::new(steps), limit: steps, bytes }
    }

    /// Takes a step.
    pub(crate) fn step(&self) -> Result<(), KernelError> {
        let take = |left: u64| left.checked_sub(1);
        match self.steps.fetch_update(Relaxed, Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(KernelError::TooLarge {
                what: "a number of steps",
                size: u128::from(self.limit) + 1,
                limit: self.limit.into(),
            }),
        }
    }

    /// Whether `more` bytes may be allocated besides what `ledger` counts.
    pub(crate) fn memory(&self, ledger: &Ledger, more: usize) -> Result<(), KernelError> {
        let size = u128::from(ledger.counts().allocated_bytes) + more as u128;
        if size <= self.bytes.into() {
            return Ok(());
        }
        Err(KernelError::TooLarge { what: "a number of allocated bytes", size, limit: self.bytes.into() })
    }
}
