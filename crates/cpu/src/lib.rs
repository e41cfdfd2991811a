//! CPU kernels: products from quantized bytes, attention over the cache, and the thread team.

mod activation;
mod attention;
mod disjoint;
mod gather;
mod lanes;
mod linear;
pub mod matmul;
mod norm;
mod team;

use heirloom_runtime::KernelSpec;

pub use team::{ClaimTeam, DEFAULT_SPIN};

/// All kernels of this crate, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] =
    &[activation::SIGMOID, activation::SWISH, attention::SPEC, gather::SPEC, linear::GEMM, norm::SPEC];
