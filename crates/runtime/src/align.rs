//! Tensors whose elements lie where Rust may not read them as such.
//!
//! Payloads are used in place, at whatever byte of a file they begin. Kernels read elements, so that the few tensors
//! that need it are copied when a kernel first asks, counted as the kernel's copy.

use heirloom_mem::{Ledger, Tensor, copy};

/// Whether the first element's address is no multiple of the element's size.
pub(crate) fn misaligned(tensor: &Tensor) -> bool {
    let width = tensor.dtype().bit_width().map_or(1, |bits| (bits as usize / 8).clamp(1, 8));
    !tensor.address().is_multiple_of(width) && !tensor.is_empty()
}

/// The tensor, dense and aligned: itself where it is both.
pub(crate) fn dense(tensor: &Tensor, ledger: &Ledger) -> Tensor {
    let dense = copy::to_dense(tensor, copy::Purpose::Kernel, ledger);
    if !misaligned(&dense) {
        return dense;
    }
    let bytes = copy::to_bytes(dense.dense_bytes().unwrap_or(&[]), copy::Purpose::Kernel, ledger);
    Tensor::new(tensor.dtype(), tensor.shape(), bytes).expect("the same shape and length")
}
