//! CPU kernels: products from quantized bytes, attention over the cache, and the thread team.

mod activation;
mod attention;
mod disjoint;
mod lanes;
pub mod matmul;
mod norm;
mod team;

use heirloom_runtime::KernelSpec;

pub use team::{ClaimTeam, DEFAULT_SPIN};

/// All kernels of this crate, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] = &[attention::SPEC, norm::SPEC, activation::SWISH, activation::SIGMOID];
