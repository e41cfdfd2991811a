//! Counters of what a session, a state or a call did with memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters that many threads may add to; read them with [`Ledger::counts`].
        #[derive(Debug, Default)]
        pub struct Ledger { $($name: AtomicU64),* }

        /// What a [`Ledger`] had counted at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64),* }

        impl Ledger {
            /// The present counts. Counters are read one after another: exact when no call runs.
            pub fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Relaxed)),* }
            }

            /// Adds what another ledger counted.
            pub fn add(&self, counts: Counts) {
                $(self.$name.fetch_add(counts.$name, Relaxed);)*
            }
            $(pub(crate) fn $name(&self, n: usize) { self.$name.fetch_add(n as u64, Relaxed); })*
        }

        impl std::ops::Sub for Counts {
            type Output = Counts;
            /// What was counted between two moments; saturates at 0.
            fn sub(self, earlier: Counts) -> Counts {
                Counts { $($name: self.$name.saturating_sub(earlier.$name)),* }
            }
        }
    };
}

impl Ledger {
    /// Counts a decoder that came with a file and is run.
    pub fn count_decoder_run(&self) {
        self.decoder_runs(1);
    }
}

counters! {
    /// Payload bytes copied to manage state: initialization, reset, feeds, publication, views. Always 0.
    state_copied_bytes,
    /// Payload bytes that kernels copied: making strided values dense, Concat, Gather, Transpose and the like.
    kernel_copied_bytes,
    /// Rows that were copied because a cache had to move: it was full, or others see rows where new ones would go.
    cache_copied_bytes,
    /// Bytes that appends wrote behind the rows that were there.
    appended_bytes,
    /// Buffers newly allocated.
    allocations,
    /// Bytes of the buffers newly allocated.
    allocated_bytes,
    /// Append buffers (caches) among the allocations.
    cache_allocations,
    /// Bytes of the append buffers newly allocated (capacity, not use).
    cache_allocated_bytes,
    /// Buffers taken again from a pool instead of being allocated.
    reuses,
    /// Decoders that came with a file and were run.
    decoder_runs,
}
