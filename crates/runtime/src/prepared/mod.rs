//! Prepared objects: constants in the arrangement that one kernel reads fastest, made on request and never stored in a
//! model.
//!
//! A kernel that has such an arrangement claims it in [`Kernel::prepare`](crate::Kernel::prepare), and asks for it in
//! each call with [`RunCx::prepared`](crate::RunCx::prepared). The [`PreparedStore`] makes each object once, whoever asks
//! and however many at a time, shares it between sessions, keeps to a budget of bytes, and can keep objects in a folder
//! for later processes. Where there is no room the kernel computes from the constant itself.

mod disk;
mod identity;
mod store;

pub use disk::CacheError;
pub use identity::KernelLayout;
pub use store::{Prepared, PreparedStore, StoreOptions, StoreReport};

use std::sync::Arc;

use heirloom_types::Value;

use crate::InputFacts;
use identity::Identity;

/// Whether sessions keep prepared objects.
#[derive(Clone, Default)]
pub enum Prepack {
    /// Kernels read constants where they were loaded or mapped; there is no second copy.
    #[default]
    Off,
    /// Kernels that have a faster arrangement keep it in this store.
    On(Arc<PreparedStore>),
}

/// What a kernel may claim before the first call.
pub struct PrepareCx<'a> {
    pub(crate) inputs: &'a [Option<InputFacts>],
    pub(crate) store: &'a Arc<PreparedStore>,
}

impl PrepareCx<'_> {
    /// The constant value of input `index`, if it has one.
    pub fn constant(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index)?.as_ref()?.constant.as_ref()
    }

    /// Whether input `index` is present, constant or not.
    pub fn has_input(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    /// The prepared form of the constant input `index`. Nothing is made before a call asks for it. `None` where the
    /// input is no constant with bytes of its own, or the store could never hold the object.
    pub fn claim(&self, index: usize, layout: KernelLayout) -> Option<Prepared> {
        let identity = Identity::of(self.constant(index)?, layout)?;
        PreparedStore::claim(self.store, identity)
    }
}
