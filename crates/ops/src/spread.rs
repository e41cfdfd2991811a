//! Work on slices, shared among the threads of the team.

use std::sync::{Mutex, PoisonError};

use heirloom_runtime::Team;

/// Elements that one task takes: enough that handing it out does not matter.
pub(crate) const PIECE: usize = 1 << 14;

/// Calls `f` once with each part, on any thread. A single part, or a single thread, allocates nothing.
pub(crate) fn parts<P: Send>(team: &dyn Team, mut parts: impl Iterator<Item = P>, f: impl Fn(P) + Sync) {
    if team.threads() == 1 {
        return parts.for_each(f);
    }
    let Some(first) = parts.next() else { return };
    let Some(second) = parts.next() else { return f(first) };
    share(team, [first, second].into_iter().chain(parts).collect(), &f);
}

fn share<P: Send>(team: &dyn Team, parts: Vec<P>, f: &(dyn Fn(P) + Sync)) {
    let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    team.run(parts.len(), &|task| {
        if let Some(part) = parts[task].lock().unwrap_or_else(PoisonError::into_inner).take() {
            f(part);
        }
    });
}

/// Calls `f` with pieces of `out` and the same pieces of `from`.
pub(crate) fn pairs<O: Send, I: Sync>(
    team: &dyn Team,
    out: &mut [O],
    from: &[I],
    f: &(dyn Fn(&mut [O], &[I]) + Sync),
) {
    if team.threads() == 1 || out.len() < 2 * PIECE {
        return f(out, from);
    }
    share(team, out.chunks_mut(PIECE).zip(from.chunks(PIECE)).collect(), &|(out, from)| f(out, from));
}

/// Calls `f` with pieces of `values`, each a multiple of `row` elements.
pub(crate) fn rows<T: Send>(team: &dyn Team, values: &mut [T], row: usize, f: &(dyn Fn(&mut [T]) + Sync)) {
    if team.threads() == 1 || values.len() < 2 * PIECE || row == 0 {
        return f(values);
    }
    share(team, values.chunks_mut(PIECE.div_ceil(row) * row).collect(), &|piece| f(piece));
}
