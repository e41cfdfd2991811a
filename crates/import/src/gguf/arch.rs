//! The architectures that can be imported: one file each, one name in the table.

use heirloom_graph::Var;

use super::decoder::Decoder;
use crate::ImportError;

/// An architecture.
pub(super) struct Architecture {
    /// Its name in `general.architecture`, which is also the prefix of its metadata.
    pub(super) name: &'static str,
    /// The version of ai.onnx that its graph needs.
    pub(super) opset: i64,
    /// Adds the graph from the token ids to the logits, which it returns.
    pub(super) build: fn(&mut Decoder<'_>) -> Result<Var, ImportError>,
}

macro_rules! architectures {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// All architectures.
        const ARCHITECTURES: &[&Architecture] = &[$(&$module::ARCHITECTURE,)*];
    };
}

architectures! {
    gemma3,
    llama,
    qwen2,
    qwen3,
}

/// The architecture called `name`.
pub(super) fn find(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().copied().find(|architecture| architecture.name == name)
}

/// The names of the architectures that can be imported.
pub fn architecture_names() -> Vec<&'static str> {
    ARCHITECTURES.iter().map(|architecture| architecture.name).collect()
}
