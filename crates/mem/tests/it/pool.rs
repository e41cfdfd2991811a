use heirloom_mem::{DType, Ledger, Pool, TensorMut};

// proves: O4
#[test]
fn a_buffer_comes_back_only_after_its_last_user_is_gone() {
    let ledger = Ledger::default();
    let mut pool = Pool::new();
    let first = pool.take(1000, &ledger).freeze();
    let address = first.address();
    let held = first.clone();
    pool.give(first);
    let second = pool.take(1000, &ledger).freeze();
    assert_ne!(second.address(), address);
    drop(held);
    assert_eq!(pool.take(1000, &ledger).freeze().address(), address);
    assert_eq!((ledger.counts().allocations, ledger.counts().reuses), (2, 1));
}

#[test]
fn steady_use_allocates_nothing() {
    let ledger = Ledger::default();
    let mut pool = Pool::new();
    let round = |pool: &mut Pool| {
        let tensors: Vec<_> = [5usize, 100, 3000, 70_000]
            .map(|n| TensorMut::new(DType::Float, &[n], pool.take(n * 4, &ledger)).freeze())
            .into();
        tensors.into_iter().for_each(|t| pool.give_tensor(t));
    };
    round(&mut pool);
    let before = ledger.counts();
    (0..50).for_each(|_| round(&mut pool));
    assert_eq!((ledger.counts() - before).allocations, 0);
    assert_eq!((ledger.counts() - before).reuses, 200);
}

#[test]
fn a_buffer_is_at_most_a_half_larger_than_asked_for() {
    let ledger = Ledger::default();
    for len in [257, 400, 1025, 4097, 100_000, 3_000_001] {
        let before = ledger.counts();
        drop(Pool::new().take(len, &ledger));
        let taken = (ledger.counts() - before).allocated_bytes as usize;
        assert!(taken >= len && taken <= len + len / 2, "{taken} bytes for {len}");
    }
}
