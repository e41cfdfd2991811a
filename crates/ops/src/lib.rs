//! ONNX operators: portable kernels, one file each. They are the definition that faster kernels are held to.
#![forbid(unsafe_code)]
// Kernels for unsigned types are made by the same code as those for signed ones.
#![allow(clippy::absurd_extreme_comparisons)]

mod arg_extreme;
mod attributes;
mod axis;
mod binary;
mod broadcast;
mod by_type;
mod cells;
pub mod convolution;
mod cosine_window;
mod cumulate;
mod distribution;
mod einsum;
mod elementwise;
mod encoded;
mod erf;
mod fourier;
mod fused_activation;
mod gelu;
mod global_pool;
mod heads;
mod integers;
mod interpolation;
mod labels;
mod last;
mod microsoft;
mod ml;
mod movement;
mod node_lists;
mod numbers;
mod onnx;
mod preview;
mod product;
mod q_linear;
mod quantized;
mod random;
mod real;
mod reals;
pub mod recurrent;
mod reduce;
mod run;
mod scalar;
mod scatter;
mod sequences;
mod skip_norm;
mod sorting;
mod spread;
mod svm_kernel;
mod table;
mod text;
mod training;
mod trees;
mod unary;
mod variadic;
pub mod window;

pub use microsoft::mat_mul_n_bits::NBits;
pub use onnx::NEWEST;
pub use onnx::mat_mul::Shapes as MatMulShapes;
pub use table::{KERNELS, portable};
