//! Caches in several segments, rings, and memory of others as the first segment.

use heirloom_mem::{
    AppendBuffer, AppendView, Bytes, ClaimError, DType, Ledger, RegionKind, Storage, Tensor, copy,
};

fn push(view: &AppendView, rows: &[u8], ledger: &Ledger) -> AppendView {
    let mut slot = view.claim(rows.len()).expect("room");
    for run in 0..view.outer() {
        let row_bytes = slot.row_bytes();
        for (row, byte) in rows.iter().enumerate() {
            slot.row_mut(run, row).fill(byte + run as u8 * 100);
        }
        assert_eq!(slot.run_mut(run).map(|part| part.len()).iter().sum::<usize>(), rows.len() * row_bytes);
    }
    slot.commit(ledger)
}

fn rows(view: &AppendView, run: usize) -> Vec<u8> {
    view.segments(run).flatten().copied().collect()
}

fn empty(outer: usize, capacity: usize, row_bytes: usize) -> AppendView {
    AppendBuffer::with_capacity(outer, capacity, row_bytes, &Ledger::default()).unwrap()
}

// proves: Z4, K1
#[test]
fn the_loser_of_the_race_shares_the_prefix_and_copies_nothing() {
    let ledger = Ledger::default();
    let root = push(&empty(2, 8, 1), &[1, 2, 3], &ledger);
    let fork = root.clone();
    let winner = push(&root, &[4], &ledger);
    assert_eq!(fork.claim(1).unwrap_err(), ClaimError::Taken { len: 3, longest: 4 });
    let loser = push(&fork.extended(4, &ledger).unwrap(), &[5, 6], &ledger);
    assert_eq!((rows(&winner, 0), rows(&loser, 0)), (vec![1, 2, 3, 4], vec![1, 2, 3, 5, 6]));
    assert_eq!(rows(&loser, 1), [101, 102, 103, 105, 106]);
    assert_eq!((loser.len(), loser.capacity(), loser.segment_count()), (5, 7, 2));
    assert_eq!((loser.region_id(), loser.address()), (root.region_id(), root.address()));
    assert_ne!(loser.tail_region_id(), winner.tail_region_id());
    let counts = ledger.counts();
    assert_eq!((counts.cache_copied_bytes, counts.kernel_copied_bytes, counts.state_copied_bytes), (0, 0, 0));
    assert_eq!(counts.appended_bytes, (3 + 1 + 2) * 2);
    // The winner's rows are its own until it is gone; the shared ones stay for the loser.
    drop((root, fork));
    let again = push(&winner, &[7], &ledger);
    drop((winner, again));
    let other = loser.truncated(3);
    assert_eq!(rows(&loser, 0), [1, 2, 3, 5, 6]);
    assert_eq!(other.claim(1).unwrap_err(), ClaimError::Taken { len: 3, longest: 5 });
}

// proves: Z4
#[test]
fn truncation_goes_back_into_earlier_segments_and_on_from_there() {
    let ledger = Ledger::default();
    let first = push(&empty(1, 4, 1), &[1, 2, 3], &ledger);
    let second = push(&first.extended(4, &ledger).unwrap(), &[4, 5], &ledger);
    let third = push(&second.extended(4, &ledger).unwrap(), &[6], &ledger);
    drop((first, second));
    assert_eq!((rows(&third, 0), third.segment_count()), (vec![1, 2, 3, 4, 5, 6], 3));
    for len in 0..=6u8 {
        let cut = third.truncated(len.into());
        assert_eq!(rows(&cut, 0), (1..=len).collect::<Vec<_>>());
    }
    let cut = third.truncated(4);
    assert_eq!(cut.claim(1).unwrap_err(), ClaimError::Taken { len: 4, longest: 5 });
    drop(third);
    let on = push(&cut, &[9], &ledger);
    assert_eq!((rows(&on, 0), on.segment_count()), (vec![1, 2, 3, 4, 9], 2));
    assert_eq!(rows(&cut, 0), [1, 2, 3, 4]);
}

// proves: Z4, K1
#[test]
fn a_window_moves_round_a_ring_without_allocation_and_old_windows_stay() {
    let ledger = Ledger::default();
    let mut window = empty(2, 7, 2);
    let buffer = window.region_id();
    for at in 0..60u8 {
        let longer = push(&window, &[at], &ledger);
        window = longer.part(longer.len().saturating_sub(5), longer.len());
        let expected: Vec<u8> = (at.saturating_sub(4)..=at).flat_map(|row| [row, row]).collect();
        assert_eq!(rows(&window, 0), expected, "step {at}");
        assert_eq!(rows(&window, 1), expected.iter().map(|b| b + 100).collect::<Vec<_>>());
        assert_eq!(window.region_id(), buffer);
    }
    assert_eq!(ledger.counts().cache_allocations, 0, "the first buffer was counted elsewhere");
    // Somebody holds on to a window: its rows are not overwritten, so the ring has no room for long.
    let held = window.clone();
    let before = rows(&held, 0);
    let mut later = window;
    for at in 60..62 {
        let longer = push(&later, &[at], &ledger);
        later = longer.part(1, 6);
    }
    assert_eq!(later.claim(1).unwrap_err(), ClaimError::Full { len: 5, rows: 1, capacity: 7 });
    let fresh = push(&later.extended(7, &ledger).unwrap(), &[62], &ledger);
    assert_eq!(rows(&held, 0), before);
    assert_eq!(rows(&fresh, 0), [57, 57, 58, 58, 59, 59, 60, 60, 61, 61, 62, 62]);
    drop(held);
    assert!(later.claim(1).is_ok(), "the held rows make room");
}

// proves: K3
#[test]
fn a_claim_longer_than_the_ring_is_refused_and_a_dropped_one_gives_its_rows_back() {
    let ledger = Ledger::default();
    let five = push(&empty(1, 6, 1), &[1, 2, 3, 4, 5], &ledger);
    let window = five.part(2, 5);
    drop(five);
    assert!(matches!(window.claim(4), Err(ClaimError::Full { .. })));
    drop(window.claim(3).unwrap());
    let round = push(&window, &[6, 7, 8], &ledger);
    assert_eq!((rows(&round, 0), round.contiguous(0)), (vec![3, 4, 5, 6, 7, 8], None));
    assert_eq!(rows(&window, 0), [3, 4, 5]);
    // An empty view of the end sees nothing that could be in the way.
    let nothing = round.part(6, 6);
    drop((round, window));
    assert_eq!(rows(&push(&nothing, &[1, 2, 3, 4, 5, 6], &ledger), 0), [1, 2, 3, 4, 5, 6]);
}

// proves: Z1, Z2
#[test]
fn memory_of_others_is_the_first_segment_of_a_cache() {
    let ledger = Ledger::default();
    let dense = Tensor::from_vec(&[2, 3, 2], (0..12i16).collect()).unwrap();
    let view = AppendView::of_tensor(&dense, 1).unwrap();
    assert_eq!((view.len(), view.outer(), view.row_bytes(), view.address()), (3, 2, 4, dense.address()));
    assert_eq!(view.claim(1).unwrap_err(), ClaimError::Full { len: 3, rows: 1, capacity: 3 });
    let longer = push(&view.extended(5, &ledger).unwrap(), &[50], &ledger);
    let tensor = Tensor::from_append(DType::Int16, &[2], &[2], longer).unwrap();
    let all = copy::to_dense(&tensor, copy::Purpose::Kernel, &ledger);
    let fifty = i16::from_le_bytes([50, 50]);
    let other = i16::from_le_bytes([150, 150]);
    assert_eq!(
        all.as_slice::<i16>().unwrap(),
        [0, 1, 2, 3, 4, 5, fifty, fifty, 6, 7, 8, 9, 10, 11, other, other]
    );
    assert_eq!(ledger.counts().cache_copied_bytes, 0);
    // Seven rows in a capacity of twelve, as a strided view says it.
    let bytes = Bytes::from_vec((0..2 * 12 * 2).collect::<Vec<u8>>());
    let strided = Tensor::strided(DType::Uint8, &[1, 2, 7, 2], &[48, 24, 2, 1], bytes).unwrap();
    assert!(matches!(strided.storage(), Storage::Strided { .. }));
    let view = AppendView::of_tensor(&strided, 2).unwrap();
    assert_eq!((rows(&view, 0), rows(&view, 1)), ((0..14).collect(), (24..38).collect()));
    assert_eq!(view.address(), strided.address());
    let short = view.truncated(2);
    assert_eq!(rows(&short, 1), [24, 25, 26, 27]);
    assert!(matches!(short.claim(1), Err(ClaimError::Full { .. })), "memory of others is never written");
    let wide = strided.to_append(2).unwrap().append_part(5, 7).unwrap();
    assert_eq!(
        copy::to_dense(&wide, copy::Purpose::Kernel, &ledger).as_slice::<u8>().unwrap(),
        [10, 11, 12, 13, 34, 35, 36, 37]
    );
}

// proves: Z2
#[test]
fn what_cannot_be_shared_in_place_is_no_segment() {
    let bytes = || Bytes::from_vec(vec![0u8; 64]);
    // Rows that are not dense, runs that are not equally far apart, elements at odd addresses, half bytes, no such axis.
    let transposed = Tensor::strided(DType::Uint8, &[2, 3, 2], &[6, 1, 3], bytes()).unwrap();
    assert!(AppendView::of_tensor(&transposed, 1).is_none());
    let uneven = Tensor::strided(DType::Uint8, &[2, 2, 2, 1], &[20, 9, 1, 1], bytes()).unwrap();
    assert!(AppendView::of_tensor(&uneven, 2).is_none());
    let odd = Tensor::new(DType::Float16, &[2, 2], bytes().slice(1..9)).unwrap();
    assert!(AppendView::of_tensor(&odd, 0).is_none());
    let half = Tensor::new(DType::Int4, &[2, 2], bytes().slice(..2)).unwrap();
    assert!(AppendView::of_tensor(&half, 0).is_none());
    assert!(AppendView::of_tensor(&odd, 2).is_none());
    // Nothing at all is an empty cache, wherever it lies.
    let none = Tensor::new(DType::Float16, &[2, 0, 4], bytes().slice(1..1)).unwrap();
    let view = AppendView::of_tensor(&none, 1).unwrap();
    assert_eq!((view.len(), view.outer(), view.row_bytes(), view.segment_count()), (0, 2, 8, 0));
    assert_eq!(bytes().kind(), RegionKind::Foreign);
}

#[test]
fn a_copy_of_segments_is_one_buffer() {
    let ledger = Ledger::default();
    let view = push(&push(&empty(2, 3, 1), &[1, 2, 3], &ledger).extended(2, &ledger).unwrap(), &[4], &ledger);
    let tensor = Tensor::from_append(DType::Uint8, &[2], &[1], view).unwrap();
    let whole = AppendBuffer::copied(&tensor, 1, 9, &ledger).unwrap();
    assert_eq!(
        (whole.contiguous(0), whole.contiguous(1)),
        (Some(&[1, 2, 3, 4][..]), Some(&[101, 102, 103, 104][..]))
    );
    assert_eq!(ledger.counts().cache_copied_bytes, 8);
    assert_eq!((tensor.run_count(), tensor.dense_bytes()), (None, None));
    let mut parts = Vec::new();
    tensor.block_parts::<u8>(2, 1, |part| parts.push(part.to_vec())).unwrap();
    assert_eq!(parts, [vec![101, 102, 103], vec![104]]);
}

// proves: Z4, K1
#[test]
fn rows_are_written_over_without_touching_those_that_are_there() {
    let ledger = Ledger::default();
    let zeros = Tensor::from_vec(&[2, 6, 1], (0..12u8).map(|i| 200 + i).collect()).unwrap();
    let start = AppendView::of_tensor(&zeros, 1).unwrap();
    let over = |view: &AppendView, at: usize, rows: &[u8]| {
        let mut slot = view.claim_over(at, rows.len(), 6 - at, &ledger).unwrap();
        for run in 0..2 {
            let bytes: Vec<u8> = rows.iter().map(|b| b + run as u8 * 100).collect();
            slot.fill(run, [&bytes[..]]);
        }
        slot.commit(&ledger)
    };
    let one = over(&start, 0, &[1, 2]);
    assert_eq!(
        (rows(&one, 0), rows(&one, 1)),
        (vec![1, 2, 202, 203, 204, 205], vec![101, 102, 208, 209, 210, 211])
    );
    let two = over(&one, 2, &[3]);
    let three = over(&two, 3, &[4]);
    assert_eq!(rows(&three, 0), [1, 2, 3, 4, 204, 205]);
    assert_eq!((three.tail_region_id(), ledger.counts().cache_allocations), (one.tail_region_id(), 1));
    // From an earlier point, while later ones live: another buffer, and nobody sees a change.
    let fork = over(&one, 2, &[9]);
    assert_ne!(fork.tail_region_id(), one.tail_region_id());
    assert_eq!((rows(&fork, 0), rows(&three, 0)), (vec![1, 2, 9, 203, 204, 205], vec![1, 2, 3, 4, 204, 205]));
    // In the middle, over the first rows, all of them, and none.
    assert_eq!(rows(&over(&three, 1, &[7, 8]), 1), [101, 107, 108, 104, 210, 211]);
    assert_eq!(rows(&over(&three, 0, &[7]), 0), [7, 2, 3, 4, 204, 205]);
    assert_eq!(rows(&over(&three, 0, &[1, 2, 3, 4, 5, 6]), 0), [1, 2, 3, 4, 5, 6]);
    assert_eq!(rows(&over(&three, 4, &[5, 6]), 0), [1, 2, 3, 4, 5, 6]);
    assert_eq!(rows(&over(&three, 2, &[]), 0), rows(&three, 0));
    for (from, to) in [(0, 6), (1, 5), (3, 5), (4, 6), (5, 5), (0, 3)] {
        let part = three.part(from, to);
        assert_eq!(
            (rows(&part, 0), part.len()),
            (rows(&three, 0)[from..to].to_vec(), to - from),
            "{from}..{to}"
        );
    }
    assert_eq!(three.part(4, 6).address(), zeros.address() + 4);
    assert!(matches!(three.claim_over(5, 2, 1, &ledger), Err(ClaimError::Full { .. })));
    assert!(matches!(three.claim(1), Err(ClaimError::Full { .. })), "there are rows behind it");
    let longer = push(&three.extended(2, &ledger).unwrap(), &[42], &ledger);
    assert_eq!(rows(&longer, 0), [1, 2, 3, 4, 204, 205, 42]);
    assert_eq!((rows(&start, 0), ledger.counts().cache_copied_bytes), ((200..206).collect(), 0));
}
