//! All kernels of this crate as one list.

use heirloom_runtime::KernelSpec;

use crate::{encoded, onnx};

const COUNT: usize = onnx::KERNELS.len() + encoded::KERNELS.len();

const fn joined() -> [KernelSpec; COUNT] {
    let mut all = [onnx::KERNELS[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        all[at] = match at.checked_sub(onnx::KERNELS.len()) {
            None => onnx::KERNELS[at],
            Some(rest) => encoded::KERNELS[rest],
        };
        at += 1;
    }
    all
}

/// All portable kernels, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] = &joined();
