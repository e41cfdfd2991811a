//! All kernels of this crate as one list.

use heirloom_runtime::KernelSpec;

use crate::{encoded, microsoft, ml, onnx, training};

/// Modules of one operator each, and the list of their kernels.
macro_rules! operators {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// All portable kernels of this table.
        pub(crate) const KERNELS: &[::heirloom_runtime::KernelSpec] = &[$($name::SPEC),*];
    };
}
pub(crate) use operators;

const TABLES: [&[KernelSpec]; 5] =
    [onnx::KERNELS, encoded::KERNELS, ml::KERNELS, microsoft::KERNELS, training::KERNELS];

const COUNT: usize = {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

const fn joined() -> [KernelSpec; COUNT] {
    let mut all = [onnx::KERNELS[0]; COUNT];
    let (mut at, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut own = 0;
        while own < TABLES[table].len() {
            all[at] = TABLES[table][own];
            (at, own) = (at + 1, own + 1);
        }
        table += 1;
    }
    all
}

/// All portable kernels, for a [`KernelRegistry`](heirloom_runtime::KernelRegistry).
pub const KERNELS: &[KernelSpec] = &joined();
