//! CPU kernels: products from quantized bytes, attention over the cache, and the thread team.

mod activation;
mod attention;
mod conv;
mod dense;
mod disjoint;
mod fallback;
mod gather;
mod gemm;
mod integers;
mod lanes;
mod linear;
pub mod matmul;
mod norm;
mod panels;
mod recurrent;
mod team;

use heirloom_runtime::KernelSpec;

pub use team::{ClaimTeam, DEFAULT_SPIN};

/// All kernels of this crate, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] = &[
    activation::SIGMOID,
    activation::SWISH,
    attention::SPEC,
    gather::SPEC,
    linear::GEMM,
    norm::SPEC,
    conv::SPEC,
    dense::MAT_MUL,
    dense::GEMM,
    integers::SPEC,
    recurrent::GRU,
    recurrent::LSTM,
];
