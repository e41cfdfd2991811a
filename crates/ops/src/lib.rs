//! ONNX operators: portable kernels, one file each. They are the definition that faster kernels are held to.
#![forbid(unsafe_code)]

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
mod global_pool;
mod integers;
mod interpolation;
mod microsoft;
mod ml;
mod movement;
mod numbers;
mod onnx;
mod product;
mod quantized;
mod random;
mod real;
mod reals;
pub mod recurrent;
mod reduce;
mod scalar;
mod scatter;
mod sequences;
mod spread;
mod table;
mod text;
mod training;
mod trees;
mod unary;
mod variadic;
pub mod window;

pub use onnx::NEWEST;
pub use table::KERNELS;
