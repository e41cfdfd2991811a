//! Work on slices, shared among the threads of the team.

use std::sync::{Mutex, PoisonError};

use heirloom_runtime::{CancelToken, Cancelled, Team, Watch};

/// Elements that one task takes: enough that handing it out does not matter.
pub(crate) const PIECE: usize = 1 << 14;

/// Calls `f` once with each part, on any thread, unless the call is cancelled meanwhile. A single part, or a single thread,
/// allocates nothing.
///
/// # Errors
/// When the call is cancelled: then some parts are left out.
pub(crate) fn parts<P: Send>(
    (team, cancel): (&dyn Team, &CancelToken),
    mut parts: impl Iterator<Item = P>,
    f: impl Fn(P) + Sync,
) -> Result<(), Cancelled> {
    if team.threads() == 1 {
        return alone(cancel, parts, f);
    }
    let Some(first) = parts.next() else { return Ok(()) };
    let Some(second) = parts.next() else {
        f(first);
        return Ok(());
    };
    share((team, cancel), [first, second].into_iter().chain(parts).collect(), &f)
}

fn alone<P>(cancel: &CancelToken, parts: impl Iterator<Item = P>, f: impl Fn(P)) -> Result<(), Cancelled> {
    for (at, part) in parts.enumerate() {
        if at != 0 {
            cancel.check()?;
        }
        f(part);
    }
    Ok(())
}

fn share<P: Send>(
    (team, cancel): (&dyn Team, &CancelToken),
    parts: Vec<P>,
    f: &(dyn Fn(P) + Sync),
) -> Result<(), Cancelled> {
    let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    team.run(parts.len(), &|task| {
        if let Some(part) = parts[task].lock().unwrap_or_else(PoisonError::into_inner).take()
            && !cancel.is_cancelled()
        {
            f(part);
        }
    });
    cancel.check()
}

/// Calls `f` with pieces of `out` and where each begins, in order.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn pieces<T>(
    cancel: &CancelToken,
    out: &mut [T],
    mut f: impl FnMut(usize, &mut [T]),
) -> Result<(), Cancelled> {
    for (at, piece) in out.chunks_mut(Watch::PIECE).enumerate() {
        cancel.check()?;
        f(at * Watch::PIECE, piece);
    }
    Ok(())
}

/// Calls `f` with pieces of `out` and the same pieces of `from`.
///
/// # Errors
/// As [`parts`].
pub(crate) fn pairs<O: Send, I: Sync>(
    by: (&dyn Team, &CancelToken),
    out: &mut [O],
    from: &[I],
    f: &(dyn Fn(&mut [O], &[I]) + Sync),
) -> Result<(), Cancelled> {
    if by.0.threads() == 1 || out.len() < 2 * PIECE {
        let pieces = out.chunks_mut(Watch::PIECE).zip(from.chunks(Watch::PIECE));
        return alone(by.1, pieces, |(out, from)| f(out, from));
    }
    share(by, out.chunks_mut(PIECE).zip(from.chunks(PIECE)).collect(), &|(out, from)| f(out, from))
}

/// Calls `f` with pieces of `values`, each a multiple of `row` elements.
///
/// # Errors
/// As [`parts`].
pub(crate) fn rows<T: Send>(
    by: (&dyn Team, &CancelToken),
    values: &mut [T],
    row: usize,
    f: &(dyn Fn(&mut [T]) + Sync),
) -> Result<(), Cancelled> {
    if row == 0 {
        f(values);
        return Ok(());
    }
    if by.0.threads() == 1 || values.len() < 2 * PIECE {
        return alone(by.1, values.chunks_mut(Watch::PIECE.div_ceil(row) * row), f);
    }
    share(by, values.chunks_mut(PIECE.div_ceil(row) * row).collect(), &|piece| f(piece))
}
