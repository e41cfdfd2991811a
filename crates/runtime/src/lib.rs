//! Sessions, plans, states and the kernel interface.
#![forbid(unsafe_code)]

mod align;
mod axis;
mod budget;
mod cancel;
mod declared;
mod decode;
mod error;
mod exec;
mod feeds;
mod grow;
mod kernel;
mod node_call;
mod options;
mod outputs;
mod plan;
mod prepared;
mod profile;
mod publication;
mod report;
mod run_cx;
mod session;
mod signature;
mod snapshot;
mod state;
mod team;
mod zeros;

/// What [`publication`] waits on; its tests under loom have another one.
mod sync {
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

pub use axis::normalize_axis;
pub use cancel::{CancelToken, Cancelled, Watch};
pub use decode::{DecodeError, DecodeOptions, DecodeSource, DecodedBy, decode};
pub use error::{Mismatch, NodeFault, NodeFaultKind, RunError, SessionError, StateError};
pub use feeds::Feeds;
pub use grow::CachePolicy;
pub use kernel::{BuildCx, BuildError, InputFacts, Kernel, KernelError, KernelRegistry, KernelSpec};
pub use node_call::{NodeCall, NodeCallError, NodeInput};
pub use options::{CallOptions, Decode, DecoderLimits, SessionOptions};
pub use outputs::{OutputValue, Outputs};
pub use prepared::{
    CacheError, KernelLayout, Prepack, PrepareCx, Prepared, PreparedStore, StoreOptions, StoreReport,
};
pub use profile::{NodeTime, Profile};
pub use report::Report;
pub use run_cx::{InputRef, RunCx};
pub use session::{Port, Session, StateSlot};
pub use snapshot::SnapshotError;
pub use state::{State, StateValues};
pub use team::{Inline, Soon, Team};
