//! What can be wrong with a file that is to be imported.

use std::path::PathBuf;

use heirloom_mem::MapError;

/// Everything the importers report. `file` is the file that is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file could not be opened or mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file does not begin as a GGUF file does.
    #[error("`{}` is no GGUF file: it begins with {found:02x?}, not with \"GGUF\"", file.display())]
    NotGguf {
        /// The file.
        file: PathBuf,
        /// Its first bytes, at most four.
        found: Vec<u8>,
    },
    /// A version that this reader does not know.
    #[error("`{}` is GGUF version {version}; versions 2 and 3 are supported, convert the model again", file.display())]
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A file for machines of the other byte order.
    #[error("`{}` is a big-endian GGUF file; convert the model again for little-endian machines", file.display())]
    BigEndian {
        /// The file.
        file: PathBuf,
    },
    /// The file ends before what it announces.
    #[error(
        "`{}` is truncated: {what} at offset {offset} needs {needed} bytes and {left} are left; fetch or copy the file again",
        file.display()
    )]
    Truncated {
        /// The file.
        file: PathBuf,
        /// What was expected there.
        what: String,
        /// Where, in bytes from the file's start.
        offset: u64,
        /// How many bytes that takes.
        needed: u64,
        /// How many the file has from there on.
        left: u64,
    },
    /// A part of the file that contradicts the format.
    #[error("`{}`: {what} at offset {offset}: {fault}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Which part.
        what: String,
        /// Where it begins, in bytes from the file's start.
        offset: u64,
        /// What is wrong with it.
        fault: String,
    },
    /// A tensor whose element type is not one of ours.
    #[error(
        "`{}`: tensor `{tensor}` has type {number}{}, which is not supported; supported are {}",
        file.display(), name.map(|n| format!(" ({n})")).unwrap_or_default(), known.join(", ")
    )]
    UnknownTensorType {
        /// The file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// The type's number in the file.
        number: u32,
        /// What GGUF calls it, if it is known at all.
        name: Option<&'static str>,
        /// The supported types.
        known: Vec<&'static str>,
    },
    /// A tensor whose data overlaps another's, lies beyond the file or is not aligned.
    #[error("`{}`: tensor `{tensor}`: {fault}", file.display())]
    BadTensor {
        /// The file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A metadata key that the model needs and the file lacks.
    #[error("`{}` has no metadata `{key}`, which {reader} needs", file.display())]
    MissingKey {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// What needs it.
        reader: String,
    },
    /// A metadata value of the wrong type or out of range.
    #[error("`{}`: metadata `{key}` is {actual}; expected {expected}", file.display())]
    BadValue {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// What it should be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// A tensor that the architecture needs and the file lacks.
    #[error("`{}` has no tensor `{tensor}`, which architecture `{architecture}` needs", file.display())]
    MissingTensor {
        /// The file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// The architecture.
        architecture: String,
    },
    /// A tensor that the architecture does not use: the model would not be computed as its authors meant.
    #[error(
        "`{}`: tensor `{tensor}` is not part of architecture `{architecture}` as it is known here; \
         importing without it would give wrong results",
        file.display()
    )]
    UnusedTensor {
        /// The file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// The architecture.
        architecture: String,
    },
    /// A feature that the file asks for and the importer does not have.
    #[error("`{}`: metadata `{key}` asks for {feature}, which is not supported", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The key that asks for it.
        key: String,
        /// The feature.
        feature: String,
    },
    /// A tensor of another shape or element type than the architecture's.
    #[error("`{}`: tensor `{tensor}` is {actual}; expected {expected}", file.display())]
    TensorShape {
        /// The file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// What it should be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// The file's name cannot stand in a model.
    #[error("`{}`: {source}", file.display())]
    Location {
        /// The file.
        file: PathBuf,
        /// What is wrong with the name.
        source: heirloom_proto::ExternalError,
    },
    /// The output is at a place from which the model file cannot be named.
    #[error(
        "`{}` cannot refer to `{}`: a model names files in its own folder or below; write it beside the file or choose \
         a folder above",
        output.display(), file.display()
    )]
    OutOfReach {
        /// The model that was to be written.
        output: PathBuf,
        /// The file that holds its weights.
        file: PathBuf,
    },
    /// The model could not be built; this is a fault of the importer or of the file's numbers.
    #[error("`{}`: {source}", file.display())]
    Graph {
        /// The file.
        file: PathBuf,
        /// What the builder says.
        source: heirloom_graph::Error,
    },
    /// The model could not be written.
    #[error(transparent)]
    Write(#[from] heirloom_proto::Error),
    /// An architecture that has no builder.
    #[error("`{}` holds a model of architecture `{architecture}`; supported are {}", file.display(), known.join(", "))]
    UnknownArchitecture {
        /// The file.
        file: PathBuf,
        /// Its architecture.
        architecture: String,
        /// The architectures in the table.
        known: Vec<&'static str>,
    },
}
