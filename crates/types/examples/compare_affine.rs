//! Compares cases of DequantizeLinear and QuantizeLinear, written by `tests/fixtures/affine.py`, to the bit:
//! `tests/python/test_affine.py` makes new ones.
//!
//!     cargo run -p heirloom-types --example compare_affine -- CASES.bin
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

#[path = "../tests/it/affine_cases.rs"]
mod affine_cases;
#[allow(dead_code)]
#[path = "../tests/it/fixture.rs"]
mod fixture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: compare_affine CASES.bin")?;
    let (cases, quantized) = affine_cases::compare(&std::fs::read(path)?);
    println!("{cases} {quantized}");
    Ok(())
}
