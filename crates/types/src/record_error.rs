//! Why a part of a record could not be found or read.

use heirloom_mem::DType;

use crate::TypeError;

/// Why a part of a record could not be found or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The type has no byte layout.
    #[error(transparent)]
    Layout(#[from] TypeError),
    /// The payload ends within a record.
    #[error(
        "{payload} bytes are no whole number of records of {record} bytes: {} records and {} bytes",
        payload / record, payload % record
    )]
    Partial {
        /// Bytes of the payload.
        payload: usize,
        /// Bytes of a record.
        record: usize,
    },
    /// The path cannot be read.
    #[error("`{path}` is no path: write names with dots between them and indices in brackets, `a.b[3].c`")]
    Path {
        /// The path.
        path: String,
    },
    /// There is no such field or bit field.
    #[error("there is no field `{name}`{}", inside(within))]
    NoField {
        /// The path so far.
        within: String,
        /// The name.
        name: String,
    },
    /// The path ends at something that has fields.
    #[error("{} holds fields: name one of them", whole(path))]
    Group {
        /// The path.
        path: String,
    },
    /// There is nothing to index.
    #[error("{} has no further dimension to index", whole(path))]
    NoDimension {
        /// The path.
        path: String,
    },
    /// An index lies outside.
    #[error("index {index} of {} lies outside 0..{count}", whole(path))]
    Index {
        /// The path.
        path: String,
        /// The index.
        index: u64,
        /// Elements there.
        count: u64,
    },
    /// Several elements where one is asked for.
    #[error("{} has {count} elements: index one of them", whole(path))]
    Elements {
        /// The path.
        path: String,
        /// Elements there.
        count: u64,
    },
    /// The element is read as something that it is not.
    #[error("{actual} cannot be read as {expected}")]
    Kind {
        /// What was asked for.
        expected: &'static str,
        /// What the element is.
        actual: String,
    },
    /// The number does not fit what it is read as.
    #[error("{value} does not fit {expected}")]
    TooLarge {
        /// What was asked for.
        expected: &'static str,
        /// The number.
        value: String,
    },
    /// The field is a constant of strings.
    #[error("the constant holds strings, not numbers")]
    Strings,
    /// The type unfolds into too many parts.
    #[error("the type has more than {limit} parts")]
    TooManySlots {
        /// The limit.
        limit: usize,
    },
    /// Elements that ONNX has no tensor of.
    #[error("a tensor of {count} {dtype} elements is too large")]
    TooManyElements {
        /// The element type.
        dtype: DType,
        /// How many.
        count: u128,
    },
}

fn inside(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in `{path}`") }
}

fn whole(path: &str) -> String {
    if path.is_empty() { "the record".into() } else { format!("`{path}`") }
}
