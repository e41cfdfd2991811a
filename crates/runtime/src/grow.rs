//! Where the rows go that a kernel appends to a cache.

use heirloom_mem::{AppendBuffer, AppendSlot, AppendView, ClaimError, Ledger, Tensor};

use crate::KernelError;

/// A cache of more segments is moved to one buffer: reading many short ones is slow.
const SEGMENTS: usize = 32;

/// How caches grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachePolicy {
    /// Rows to reserve in a new cache, at least 1; memory is taken as rows are written.
    pub reserve: usize,
    /// The factor by which a full cache grows, finite and at least 1; `None` fixes the capacity at `reserve`: a call that
    /// needs more fails and leaves the cache as it was.
    pub growth: Option<f32>,
    /// Whether new rows are written behind the old ones. `false` moves the cache in each call, as if there were no append
    /// buffers: for comparisons, never needed otherwise.
    pub in_place: bool,
}

impl Default for CachePolicy {
    /// 256 rows, then twice as many as are needed, in place.
    fn default() -> CachePolicy {
        CachePolicy { reserve: 256, growth: Some(2.0), in_place: true }
    }
}

impl CachePolicy {
    /// Caches of at most `rows` rows.
    pub fn fixed(rows: usize) -> CachePolicy {
        CachePolicy { reserve: rows, growth: None, ..CachePolicy::default() }
    }

    /// What makes the policy impossible, if anything does.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.reserve == 0 {
            return Some("`reserve` is 0; a cache holds at least 1 row".into());
        }
        match self.growth {
            Some(growth) if !(growth.is_finite() && growth >= 1.0) => {
                Some(format!("`growth` is {growth}; it is a finite factor of at least 1"))
            }
            _ => None,
        }
    }

    /// The rows that a cache is to have room for when it needs `needed`.
    fn room(&self, len: usize, needed: usize) -> Result<usize, ClaimError> {
        match self.growth {
            _ if needed <= self.reserve => Ok(self.reserve),
            None => Err(ClaimError::Full { len, rows: needed - len, capacity: self.reserve }),
            Some(growth) => {
                let grown = needed as f64 * f64::from(growth);
                Ok(needed.max(grown.min(usize::MAX as f64 / 2.0) as usize))
            }
        }
    }
}

/// What becomes of a cache without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It goes on in a further segment.
    Segment,
    /// Its rows move to a larger buffer.
    Move,
}

/// Room for `rows` rows behind those of `past` along `axis`.
pub(crate) fn append(
    past: &Tensor,
    axis: usize,
    rows: usize,
    policy: CachePolicy,
    growth: Growth,
    ledger: &Ledger,
) -> Result<AppendSlot, KernelError> {
    let len = past.shape().get(axis).copied().unwrap_or(0);
    let needed = len.checked_add(rows).ok_or(ClaimError::Full { len, rows, capacity: usize::MAX })?;
    if !policy.in_place {
        policy.room(len, needed)?;
        return Ok(AppendBuffer::copied(past, axis, needed.max(1), ledger)?.claim(rows)?);
    }
    let own = past.append_view().filter(|&(_, at)| at == axis).map(|(view, _)| view);
    let forked = match own.map(|view| view.claim(rows)) {
        Some(Ok(slot)) if policy.growth.is_some() || needed <= policy.reserve => return Ok(slot),
        Some(Err(ClaimError::Taken { .. })) => true,
        _ => false,
    };
    let room = policy.room(len, needed)?;
    if let Some(view) = shareable(past, axis, own, growth, forked) {
        // A segment of a few rows would soon be followed by the next.
        let least = if policy.growth.is_some() { policy.reserve } else { 0 };
        return Ok(view.extended((room - len).max(rows).max(least).max(1), ledger)?.claim(rows)?);
    }
    Ok(AppendBuffer::copied(past, axis, room, ledger)?.claim(rows)?)
}

/// The rows of `past` where they lie, if the cache is to go on behind them in another buffer.
fn shareable(
    past: &Tensor,
    axis: usize,
    own: Option<&AppendView>,
    growth: Growth,
    forked: bool,
) -> Option<AppendView> {
    if past.is_empty() || (growth == Growth::Move && !forked) {
        return None;
    }
    let view = own.cloned().or_else(|| AppendView::of_tensor(past, axis))?;
    (view.segment_count() < SEGMENTS).then_some(view)
}

/// Room for the rows `at` in place of those of `past` along `axis`.
pub(crate) fn over(
    past: &Tensor,
    axis: usize,
    at: std::ops::Range<usize>,
    policy: CachePolicy,
    ledger: &Ledger,
) -> Result<AppendSlot, KernelError> {
    let len = past.shape().get(axis).copied().unwrap_or(0);
    let shared = AppendView::of_tensor(past, axis);
    let view = match shared.filter(|view| policy.in_place && view.segment_count() < SEGMENTS) {
        Some(view) => view,
        None => AppendBuffer::copied(past, axis, len.max(1), ledger)?,
    };
    // The cache is written to its end, sooner or later.
    let room = len.saturating_sub(at.start);
    Ok(view.claim_over(at.start, at.len(), room, ledger)?)
}
