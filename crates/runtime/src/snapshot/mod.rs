//! States in files.
//!
//! A saved state is an ONNX model without nodes: its initializers and encoded initializers are the leaves of the retained
//! values, its `struct_types` the declarations that they need, and two metadata entries say the rest. `heirloom.state`
//! (JSON) is the tree of structs, sequences, optionals and maps over the leaves, and the digest of the model that the state
//! belongs to; `heirloom.state.sha256`, the last field of the file, is the digest of every byte before it. Tensors begin at
//! multiples of 64 bytes and are used in the mapping when the state is loaded.
//!
//! The model's digest is that of its `.onnx` bytes; external data count by file name, offset and length. It is taken when a
//! state is saved or loaded, never by a call.

mod error;
mod read;
mod tree;
mod write;

pub use error::SnapshotError;

use std::io::Write;
use std::path::Path;

use heirloom_graph::Model;
use sha2::{Digest, Sha256};

use crate::{Session, State, StateError};

/// The metadata entry with the tree.
const TREE: &str = "heirloom.state";
/// The metadata entry with the digest of the file before it.
const CHECKSUM: &str = "heirloom.state.sha256";
/// What the tree's entry says of itself.
const VERSION: u64 = 1;
/// Tensors begin at multiples of so many bytes.
const ALIGN: u64 = 64;

impl State {
    /// Writes the retained values to a file, with their types, a checksum, and the identity of the model. The file is
    /// replaced as a whole, once it is complete. The state goes on as it is, and may be at work meanwhile: what is saved is
    /// what it was after its last call.
    ///
    /// # Errors
    /// When the state is closed, or the file cannot be written; a file that was there is then as it was.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), StateError> {
        let path = path.as_ref();
        let values = self.values()?;
        write::save(&self.session().0, values.iter(), path)
            .map_err(|source| StateError::Snapshot { path: path.into(), source: Box::new(source) })
    }
}

impl Session {
    /// A state with the values that [`State::save`] wrote, used in the file's mapping: the file must not be rewritten in
    /// place while they live (saving anew replaces it and is safe).
    ///
    /// # Errors
    /// When the file cannot be mapped, is damaged, belongs to another model, declares a struct type that the model declares
    /// otherwise, or holds values that do not fit the model's persistent inputs.
    pub fn load_state(&self, path: impl AsRef<Path>) -> Result<State, StateError> {
        let path = path.as_ref();
        let values = read::load(&self.0, path)
            .map_err(|source| StateError::Snapshot { path: path.into(), source: Box::new(source) })?;
        self.make_state(
            values.iter().map(|(name, value)| (&**name, value.clone())).collect::<crate::Feeds<'_>>(),
        )
    }
}

/// The digest of the model's own bytes, in hexadecimal digits.
fn model_digest(model: &Model) -> std::io::Result<String> {
    struct Hasher(Sha256);
    impl Write for Hasher {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut hasher = Hasher(Sha256::new());
    model.proto().encode_to(&mut hasher)?;
    Ok(hex(&hasher.0.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
