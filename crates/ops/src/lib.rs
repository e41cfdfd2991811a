//! ONNX operators: portable kernels, one file each. They are the definition that faster kernels are held to.
#![forbid(unsafe_code)]

mod attributes;
mod broadcast;
mod by_type;
mod convolution;
mod elementwise;
mod encoded;
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
mod real;
mod recurrent;
mod sequences;
mod table;
mod trees;
mod window;

pub use table::KERNELS;
