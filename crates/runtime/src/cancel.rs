//! Stopping a call from outside, or when its time is over.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Asked whenever a call looks at its token.
type Probe = dyn Fn() -> bool + Send + Sync;

/// Stops the calls that it was given to. Clones share one flag.
#[derive(Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
    probe: Option<Arc<Probe>>,
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
        CancelToken { deadline: Some(deadline), ..self.clone() }
    }

    /// A token of the same flag that stops calls when `probe` says so, too. Calls ask it often and from all their
    /// threads: it must be quick, as one that looks at a clock first. It takes the place of an earlier probe.
    #[must_use]
    pub fn with_probe(&self, probe: impl Fn() -> bool + Send + Sync + 'static) -> CancelToken {
        CancelToken { probe: Some(Arc::new(probe)), ..self.clone() }
    }

    /// Asks the calls that hold this token to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Makes the token usable for later calls; a deadline stays.
    pub fn reset(&self) {
        self.flag.store(false, Relaxed);
    }

    /// Whether a stop was asked for, the deadline has passed, or the probe says so.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.probe.as_ref().is_some_and(|probe| probe())
    }

    /// An error when a stop was asked for.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// Counts a kernel's work, so that it looks at its token often enough and not oftener.
pub struct Watch<'a> {
    token: &'a CancelToken,
    left: usize,
}

impl CancelToken {
    /// Watches one thread's work from here on.
    pub fn watch(&self) -> Watch<'_> {
        Watch { token: self, left: Watch::PIECE }
    }
}

impl Watch<'_> {
    /// Elements that are computed one by one between two looks: a few milliseconds at most.
    pub const PIECE: usize = 1 << 17;

    /// Says that `work` elements come next, and looks at the token where enough went before.
    ///
    /// # Errors
    /// [`Cancelled`].
    #[inline]
    pub fn pass(&mut self, work: usize) -> Result<(), Cancelled> {
        match self.left.checked_sub(work) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = Watch::PIECE;
                self.token.check()
            }
        }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("left", &self.left).finish_non_exhaustive()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("flag", &self.flag)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
