use std::sync::Barrier;

use heirloom_mem::{AppendBuffer, AppendView, ClaimError, DType, Ledger, Tensor, copy};

fn push(view: &AppendView, byte: u8, ledger: &Ledger) -> AppendView {
    let mut slot = view.claim(1).expect("room behind the longest view");
    for run in 0..view.outer() {
        slot.run_mut(run).into_iter().for_each(|part| part.fill(byte + run as u8 * 16));
    }
    slot.commit(ledger)
}

fn run(view: &AppendView, run: usize) -> &[u8] {
    view.contiguous(run).expect("one segment")
}

// proves: K1
#[test]
fn appending_writes_the_new_rows_alone_and_allocates_once() {
    let ledger = Ledger::default();
    let mut view = AppendBuffer::with_capacity(2, 32, 8, &ledger).unwrap();
    let address = view.address();
    for row in 0..24 {
        view = push(&view, row, &ledger);
    }
    let counts = ledger.counts();
    assert_eq!(counts.cache_allocations, 1);
    assert_eq!(counts.cache_allocated_bytes, 2 * 32 * 8);
    assert_eq!(counts.appended_bytes, 2 * 24 * 8);
    assert_eq!(counts.kernel_copied_bytes, 0);
    assert_eq!(view.address(), address);
    let expected: Vec<u8> = (0..24).flat_map(|row| [row + 16; 8]).collect();
    assert_eq!(run(&view, 1), expected);
}

// proves: Z4, K2
#[test]
fn an_earlier_view_sees_neither_later_rows_nor_changes() {
    let ledger = Ledger::default();
    let one = push(&AppendBuffer::with_capacity(2, 8, 2, &ledger).unwrap(), 1, &ledger);
    let two = push(&one, 2, &ledger);
    assert_eq!((one.len(), run(&one, 0), run(&one, 1)), (1, &[1, 1][..], &[17, 17][..]));
    assert_eq!((two.len(), run(&two, 0), run(&two, 1)), (2, &[1, 1, 2, 2][..], &[17, 17, 18, 18][..]));
}

// proves: Z4
#[test]
fn the_second_fork_to_append_is_refused_while_the_first_lives() {
    let ledger = Ledger::default();
    let root = push(&AppendBuffer::with_capacity(1, 8, 1, &ledger).unwrap(), 1, &ledger);
    let fork = root.clone();
    let winner = push(&root, 2, &ledger);
    assert_eq!(fork.claim(1).unwrap_err(), ClaimError::Taken { len: 1, longest: 2 });
    drop(winner);
    let second = push(&fork, 3, &ledger);
    assert_eq!(run(&second, 0), [1, 3]);
    assert_eq!(run(&root, 0), [1]);
}

// proves: K3
#[test]
fn a_dropped_claim_and_a_dropped_result_give_their_rows_back() {
    let ledger = Ledger::default();
    let root = push(&AppendBuffer::with_capacity(1, 3, 1, &ledger).unwrap(), 1, &ledger);
    drop(root.claim(2).unwrap());
    let failed = push(&push(&root, 8, &ledger), 9, &ledger);
    assert_eq!(run(&failed, 0), [1, 8, 9]);
    drop(failed);
    let retried = push(&root, 2, &ledger);
    assert_eq!(run(&retried, 0), [1, 2]);
}

// proves: K3
#[test]
fn a_claim_that_is_open_keeps_others_out() {
    let ledger = Ledger::default();
    let root = AppendBuffer::with_capacity(1, 8, 1, &ledger).unwrap();
    let open = root.claim(3).unwrap();
    assert_eq!(root.claim(1).unwrap_err(), ClaimError::Taken { len: 0, longest: 3 });
    drop(open);
    assert!(root.claim(1).is_ok());
}

// proves: K3
#[test]
fn capacities_that_cannot_be_are_refused() {
    let ledger = Ledger::default();
    for (outer, capacity, row) in
        [(1, 0, 4), (usize::MAX, 2, 4), (1, usize::MAX / 2, 4), (1, 1 << 62, 1 << 4)]
    {
        let error = AppendBuffer::with_capacity(outer, capacity, row, &ledger).unwrap_err();
        assert_eq!(error, ClaimError::Capacity { outer, capacity, row_bytes: row });
    }
    let view = AppendBuffer::with_capacity(1, 4, 1, &ledger).unwrap();
    assert_eq!(view.claim(5).unwrap_err(), ClaimError::Full { len: 0, rows: 5, capacity: 4 });
    assert!(matches!(view.claim(usize::MAX).unwrap_err(), ClaimError::Full { .. }));
    assert_eq!(ledger.counts().cache_allocations, 1);
}

#[test]
fn appending_no_rows_changes_nothing() {
    let ledger = Ledger::default();
    let view = push(&AppendBuffer::with_capacity(1, 4, 1, &ledger).unwrap(), 7, &ledger);
    let same = view.claim(0).unwrap().commit(&ledger);
    assert_eq!((same.len(), run(&same, 0)), (1, &[7][..]));
    assert_eq!(ledger.counts().appended_bytes, 1);
    assert_eq!(run(&push(&view, 8, &ledger), 0), [7, 8]);
}

#[test]
fn a_truncated_view_can_append_once_longer_ones_are_gone() {
    let ledger = Ledger::default();
    let mut view = AppendBuffer::with_capacity(1, 8, 1, &ledger).unwrap();
    for byte in 1..=4 {
        view = push(&view, byte, &ledger);
    }
    let short = view.truncated(2);
    assert!(matches!(short.claim(1), Err(ClaimError::Taken { .. })));
    drop(view);
    assert_eq!(run(&push(&short, 9, &ledger), 0), [1, 2, 9]);
}

#[test]
fn a_buffer_made_from_a_tensor_holds_its_rows_and_counts_the_copy() {
    let ledger = Ledger::default();
    let tensor = Tensor::from_vec(&[2, 3, 2], (0..12i32).collect()).unwrap();
    let view = AppendBuffer::copied(&tensor, 1, 5, &ledger).unwrap();
    let grown = Tensor::from_append(DType::Int32, &[2], &[2], view).unwrap();
    assert_eq!(grown.shape(), [2, 3, 2]);
    assert_eq!(grown.block::<i32>(2, 1).unwrap(), [6, 7, 8, 9, 10, 11]);
    assert_eq!(ledger.counts().cache_copied_bytes, 48);
    assert_eq!(ledger.counts().appended_bytes, 0);
    let dense = copy::to_dense(&grown, copy::Purpose::Kernel, &ledger);
    assert_eq!(dense.as_slice::<i32>().unwrap(), (0..12).collect::<Vec<_>>());
}

// proves: Z4
#[test]
fn readers_of_old_views_and_the_writer_do_not_meet() {
    let ledger = Ledger::default();
    let mut view = push(&AppendBuffer::with_capacity(2, 400, 16, &ledger).unwrap(), 0, &ledger);
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let old = view.clone();
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..2000 {
                    assert!(run(&old, 1).iter().all(|&b| b == 16));
                    assert_eq!(old.clone().len(), 1);
                    assert!(old.claim(1).is_err() || old.len() == 1);
                }
            });
        }
        barrier.wait();
        for row in 1..100 {
            // A reader may hold a claim for a moment; the writer then tries again, as a session would take a fresh buffer.
            loop {
                if let Ok(mut slot) = view.claim(1) {
                    (0..2).for_each(|run| slot.run_mut(run).into_iter().for_each(|part| part.fill(row)));
                    view = slot.commit(&ledger);
                    break;
                }
                std::hint::spin_loop();
            }
        }
    });
    assert_eq!(view.len(), 100);
    assert!((0..100usize).all(|row| row == 0 || run(&view, 0)[row * 16] == row as u8));
}
