//! Stopping a call from outside, or when its time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Stops the calls that it was given to. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

/// The call was stopped by its token; the state is as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call was cancelled; the state is as it was before")]
pub struct Cancelled;

impl CancelToken {
    /// A token that stops nothing yet.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// A token of the same flag that stops calls from `deadline` on, too. An earlier deadline stays.
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> CancelToken {
        let deadline = self.deadline.map_or(deadline, |earlier| earlier.min(deadline));
        CancelToken { flag: self.flag.clone(), deadline: Some(deadline) }
    }

    /// Asks the calls that hold this token to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Makes the token usable for later calls; a deadline stays.
    pub fn reset(&self) {
        self.flag.store(false, Relaxed);
    }

    /// Whether a stop was asked for, or the deadline has passed.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// An error when a stop was asked for.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
