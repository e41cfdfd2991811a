//! Sessions, plans, states and the kernel interface.
#![forbid(unsafe_code)]

mod cancel;
mod kernel;
mod run_cx;
mod team;

pub use cancel::{CancelToken, Cancelled};
pub use kernel::{BuildCx, BuildError, InputFacts, Kernel, KernelError, KernelRegistry, KernelSpec};
pub use run_cx::{CachePolicy, InputRef, RunCx};
pub use team::{Inline, Team};
