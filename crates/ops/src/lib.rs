//! ONNX operators: portable kernels, one file each. They are the definition that faster kernels are held to.
#![forbid(unsafe_code)]

mod attributes;
mod broadcast;
mod by_type;
mod elementwise;
mod encoded;
mod integers;
mod movement;
mod numbers;
mod onnx;
mod product;
mod real;
mod sequences;
mod table;

pub use table::KERNELS;
