//! CPU kernels: products from quantized bytes, attention over the cache, and the thread team.

mod activation;
mod ahead;
mod attention;
mod conv;
mod dense;
mod dequantize;
mod disjoint;
mod fallback;
mod gather;
mod gemm;
mod integers;
mod lanes;
pub mod limits;
mod linear;
pub mod matmul;
mod n_bits;
mod norm;
mod panels;
mod pool;
mod quantized_lstm;
mod recurrent;
mod rows;
mod team;

use heirloom_runtime::KernelSpec;

pub use heirloom_simd::Isa;
pub use team::{ClaimTeam, DEFAULT_SPIN};

/// All kernels of this crate, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] = &[
    // Among equal ranks the first that accepts a node takes it.
    dense::GEMM,
    linear::GEMM,
    activation::ERF,
    activation::GELU,
    activation::HARD_SIGMOID,
    activation::HARD_SWISH,
    activation::LEAKY_RELU,
    activation::RELU,
    activation::SIGMOID,
    activation::SWISH,
    activation::TANH,
    attention::SPEC,
    conv::SPEC,
    conv::TRANSPOSE,
    dense::MAT_MUL,
    dequantize::SPEC,
    gather::SPEC,
    integers::SPEC,
    integers::quantize::SPEC,
    n_bits::SPEC,
    norm::SPEC,
    pool::AVERAGE,
    pool::GLOBAL_AVERAGE,
    pool::MAX,
    quantized_lstm::SPEC,
    recurrent::GRU,
    recurrent::LSTM,
    rows::LAYER_NORM,
    rows::SOFTMAX,
];
