//! The one place where payload bytes are copied, and counted.
#![allow(clippy::disallowed_methods)]

use crate::{Bytes, BytesMut, Ledger, Tensor};

/// On whose behalf bytes are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To manage state. Heirloom has no such copy; a caller that makes one sees it in
    /// [`Counts::state_copied_bytes`](crate::Counts::state_copied_bytes).
    State,
    /// A kernel's work.
    Kernel,
    /// To move a cache to a buffer with room, or away from rows that others see.
    Cache,
}

fn count(bytes: usize, purpose: Purpose, ledger: &Ledger) {
    match purpose {
        Purpose::State => ledger.state_copied_bytes(bytes),
        Purpose::Kernel => ledger.kernel_copied_bytes(bytes),
        Purpose::Cache => ledger.cache_copied_bytes(bytes),
    }
}

/// Copies `from` into `to`.
///
/// # Panics
/// When the lengths differ.
pub fn into<T: Copy>(to: &mut [T], from: &[T], purpose: Purpose, ledger: &Ledger) {
    to.copy_from_slice(from);
    count(std::mem::size_of_val(from), purpose, ledger);
}

/// Fills `to` with the runs of `from`, one behind the other; counted once.
///
/// # Panics
/// When the runs are together shorter or longer than `to`.
pub fn runs<'a, T: Copy + 'a>(
    to: &mut [T],
    from: impl Iterator<Item = &'a [T]>,
    purpose: Purpose,
    ledger: &Ledger,
) {
    let mut at = 0;
    for run in from {
        to[at..at + run.len()].copy_from_slice(run);
        at += run.len();
    }
    assert_eq!(at, to.len(), "the runs fill the target");
    count(std::mem::size_of_val(to), purpose, ledger);
}

/// Bytes that [`runs_while`] copies between two questions: less than a millisecond's.
const PIECE: usize = 1 << 20;

/// [`runs`] as long as `on` says so, which is asked once in a while. Whether all was copied.
///
/// # Panics
/// When the runs are together shorter or longer than `to`.
pub fn runs_while<'a>(
    to: &mut [u8],
    from: impl Iterator<Item = &'a [u8]>,
    on: impl Fn() -> bool,
    purpose: Purpose,
    ledger: &Ledger,
) -> bool {
    let (mut at, mut left) = (0, PIECE);
    for run in from {
        // A run of a few bytes takes as long as one of a cache line.
        left = match left.checked_sub(run.len().max(64)) {
            Some(left) => left,
            None if on() => PIECE,
            None => return false,
        };
        for part in run.chunks(PIECE) {
            if run.len() > PIECE && !on() {
                return false;
            }
            to[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }
    assert_eq!(at, to.len(), "the runs fill the target");
    count(to.len(), purpose, ledger);
    true
}

/// A copy of `from` on the heap, 64-byte aligned.
pub fn to_bytes(from: &[u8], purpose: Purpose, ledger: &Ledger) -> Bytes {
    let mut to = BytesMut::zeroed(from.len(), ledger);
    into(to.as_mut_slice(), from, purpose, ledger);
    to.freeze()
}

/// A dense tensor with the elements of `tensor`: itself where it is dense already, else a counted copy.
///
/// # Panics
/// Never for tensors whose element width is a whole number of bytes; narrower ones are always dense.
pub fn to_dense(tensor: &Tensor, purpose: Purpose, ledger: &Ledger) -> Tensor {
    if tensor.dense_bytes().is_some() {
        return tensor.clone();
    }
    let len = tensor.dtype().payload_bytes(tensor.len()).expect("strided tensors have fixed-width elements");
    let mut to = BytesMut::zeroed(len, ledger);
    let mut at = 0;
    tensor.for_each_run(|run| {
        to.as_mut_slice()[at..at + run.len()].copy_from_slice(run);
        at += run.len();
    });
    count(len, purpose, ledger);
    Tensor::new(tensor.dtype(), tensor.shape(), to.freeze()).expect("the same shape and length")
}
