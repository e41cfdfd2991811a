//! When a state's values change: the whole protocol of calls, apart from what they compute.
//!
//! The tests drive this file under loom too, with loom's mutex for the standard library's.

use super::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

/// Values that calls replace as a whole, one call at a time. `S` is what a call works with, `V` what is published.
pub(crate) struct Publication<S, V> {
    /// Held by the call under way.
    call: Mutex<S>,
    /// `None` once closed. Held for moments only: to look at handles, or to exchange them.
    values: Mutex<Option<V>>,
}

impl<S, V> Publication<S, V> {
    pub(crate) fn new(call: S, values: V) -> Publication<S, V> {
        Publication { call: Mutex::new(call), values: Mutex::new(Some(values)) }
    }

    /// The right to change the values; `None` while another call has it. Nobody waits.
    pub(crate) fn begin(&self) -> Option<MutexGuard<'_, S>> {
        match self.call.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::WouldBlock) => None,
            // A kernel panicked in an earlier call: nothing was published, and the lists are cleared before use.
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        }
    }

    /// The present values; `None` once closed. At any time, also during a call.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&V) -> T) -> Option<T> {
        self.lock().as_ref().map(f)
    }

    /// Puts other values in place and gives the old ones back, to be dropped or used again. Only who holds the right may
    /// call this, which the first argument shows.
    pub(crate) fn publish(&self, _right: &MutexGuard<'_, S>, mut values: V) -> Option<V> {
        if let Some(present) = &mut *self.lock() {
            std::mem::swap(present, &mut values);
        }
        Some(values)
    }

    /// Takes the values away for good.
    pub(crate) fn close(&self, _right: &MutexGuard<'_, S>) -> Option<V> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<V>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
