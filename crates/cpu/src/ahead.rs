//! Which weight is read after which, learned from the order in which a thread calls their products: between two products
//! other threads have time to bring the next weight near.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heirloom_runtime::Soon;

thread_local! {
    /// The follower of the product that this thread called last.
    static LAST: RefCell<Option<Arc<Follower>>> = const { RefCell::new(None) };
}

/// What was read after a product the last time.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    address: AtomicUsize,
    bytes: AtomicUsize,
    share: AtomicUsize,
}

impl Follower {
    /// Notes that this thread reads `own` now, after whatever it read last.
    pub(crate) fn called(self: &Arc<Self>, own: Soon) {
        // A thread that is ending has no last product.
        let last = LAST.try_with(|last| last.replace(Some(self.clone()))).ok().flatten();
        if let Some(last) = last {
            last.address.store(own.address, Relaxed);
            last.bytes.store(own.bytes, Relaxed);
            last.share.store(own.share, Relaxed);
        }
    }

    /// What comes next, if it is as the last time.
    pub(crate) fn next(&self) -> Soon {
        Soon {
            address: self.address.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            share: self.share.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heirloom_runtime::Soon;

    use super::Follower;

    fn soon(address: usize) -> Soon {
        Soon { address, bytes: 100, share: 50 }
    }

    #[test]
    fn each_product_knows_which_weight_followed_it_the_last_time() {
        let followers: [Arc<Follower>; 3] = Default::default();
        for order in [[0, 1, 2], [0, 2, 1]] {
            for at in order {
                followers[at].called(soon(1000 * (at + 1)));
            }
        }
        assert_eq!([0, 1, 2].map(|at| followers[at].next().address), [3000, 3000, 2000]);
        assert_eq!(followers[0].next(), soon(3000));
    }
}
