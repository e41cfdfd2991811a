//! Sorting that can be stopped.

use std::cmp::Ordering;

use heirloom_runtime::{Cancelled, Watch};

/// What is sorted at once.
const PIECE: usize = 1 << 14;

/// Sorts `list`; equal elements keep their order.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn stable<T: Copy>(
    watch: &mut Watch<'_>,
    list: &mut Vec<T>,
    mut order: impl FnMut(&T, &T) -> Ordering,
) -> Result<(), Cancelled> {
    for piece in list.chunks_mut(PIECE) {
        watch.pass(4 * piece.len())?;
        piece.sort_by(&mut order);
    }
    let (mut width, mut other) = (PIECE, Vec::new());
    while width < list.len() {
        other.clear();
        other.reserve(list.len());
        for pair in list.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                watch.pass(1)?;
                if order(a, b).is_le() {
                    other.push(*a);
                    left = left_rest;
                } else {
                    other.push(*b);
                    right = right_rest;
                }
            }
            other.extend(left.iter().chain(right));
        }
        std::mem::swap(list, &mut other);
        width *= 2;
    }
    Ok(())
}

/// Leaves the first `k` of the `count` numbers from 0 on in `list`, as `order` has them, in no particular order. No two are
/// equal.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn first(
    watch: &mut Watch<'_>,
    list: &mut Vec<usize>,
    (k, count): (usize, usize),
    mut order: impl FnMut(&usize, &usize) -> Ordering,
) -> Result<(), Cancelled> {
    list.clear();
    if k == 0 {
        return Ok(());
    }
    // As many again as are kept: each number is looked at a few times.
    let step = k.max(PIECE);
    for from in (0..count).step_by(step) {
        watch.pass(2 * (list.len() + step.min(count - from)))?;
        list.extend(from..(from + step).min(count));
        if k < list.len() {
            list.select_nth_unstable_by(k - 1, &mut order);
            list.truncate(k);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use heirloom_runtime::CancelToken;

    use super::{PIECE, first, stable};

    fn keys(count: usize) -> Vec<(u32, usize)> {
        (0..count).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 20, i)).collect()
    }

    #[test]
    fn lists_longer_than_a_piece_are_sorted_and_equal_elements_keep_their_order() {
        let token = CancelToken::new();
        for count in [0, 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
            let (mut ours, mut expected) = (keys(count), keys(count));
            stable(&mut token.watch(), &mut ours, |a, b| a.0.cmp(&b.0)).unwrap();
            expected.sort_by_key(|key| key.0);
            assert!(ours == expected, "{count}");
        }
    }

    #[test]
    fn the_first_of_many_are_those_of_the_sorted_list() {
        let token = CancelToken::new();
        let keys = keys(5 * PIECE + 7);
        for k in [0, 1, 100, PIECE + 3, keys.len() - 1, keys.len()] {
            let (mut ours, mut expected) = (Vec::new(), keys.clone());
            first(&mut token.watch(), &mut ours, (k, keys.len()), |&a, &b| keys[a].cmp(&keys[b])).unwrap();
            expected.sort_unstable();
            let mut expected: Vec<usize> = expected[..k].iter().map(|key| key.1).collect();
            ours.sort_unstable();
            expected.sort_unstable();
            assert!(ours == expected, "{k}");
        }
    }

    #[test]
    fn a_cancelled_sort_stops() {
        let token = CancelToken::new();
        token.cancel();
        let mut list = keys(5 * PIECE);
        assert!(stable(&mut token.watch(), &mut list, |a, b| a.0.cmp(&b.0)).is_err());
        assert!(first(&mut token.watch(), &mut Vec::new(), (9, 50 * PIECE), usize::cmp).is_err());
    }
}
