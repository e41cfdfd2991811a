//! Stopping a call from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Stops the calls that it was given to. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

/// The call was stopped by its token; the state is as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call was cancelled; the state is as it was before")]
pub struct Cancelled;

impl CancelToken {
    /// A token that stops nothing yet.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Asks the calls that hold this token to stop.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Makes the token usable for later calls.
    pub fn reset(&self) {
        self.0.store(false, Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// An error when a stop was asked for.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
