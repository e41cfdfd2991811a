//! All kernels of this crate as one list.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::{encoded, microsoft, ml, onnx, preview, training};

/// Modules of one operator each, and the list of their kernels.
macro_rules! operators {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// All portable kernels of this table.
        pub(crate) const KERNELS: &[::heirloom_runtime::KernelSpec] = &[$($name::SPEC),*];
    };
}
pub(crate) use operators;

const TABLES: [&[KernelSpec]; 6] =
    [onnx::KERNELS, encoded::KERNELS, ml::KERNELS, microsoft::KERNELS, preview::KERNELS, training::KERNELS];

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

/// The portable kernel of a node: the definition that a faster kernel may leave unusual inputs to.
///
/// # Errors
/// When there is none, or it refuses the node.
pub fn portable(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let node = cx.node;
    let domain = if node.domain == "ai.onnx" { "" } else { &*node.domain };
    let fits = |spec: &&KernelSpec| {
        spec.op == node.op_type
            && spec.domain == domain
            && (spec.versions.0..=spec.versions.1).contains(&cx.opset)
            && (spec.accepts)(cx)
    };
    let spec = KERNELS.iter().find(fits).ok_or_else(|| BuildError::Unsupported {
        name: node.op_type.clone(),
        value: cx.opset.to_string(),
        reason: "no portable kernel takes this version and these inputs".into(),
    })?;
    (spec.build)(cx)
}
