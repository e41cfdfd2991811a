//! The portable kernels against ONNX's definitions.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

mod encoded;
mod group_query;
mod hostile;
mod microsoft;
mod oracle;
mod pools;
mod random;
mod rules;
mod sequences;
mod values;

use heirloom_runtime::KernelRegistry;

fn registry() -> KernelRegistry {
    KernelRegistry::new().with(heirloom_ops::KERNELS.iter().copied())
}
