//! What can go wrong: in the bytes of a message, in where its payloads lie, and in files.

use std::fmt;
use std::path::PathBuf;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("the field takes {needed} bytes and {left} are left; the file is cut short or damaged")]
    Truncated {
        /// Bytes that the field claims.
        needed: u64,
        /// Bytes that are left in the message around it.
        left: u64,
    },
    /// A varint is longer than ten bytes (a tag: five).
    #[error("an integer is longer than its type; the file is damaged or no ONNX file")]
    LongVarint,
    /// A field number that does not exist.
    #[error("a field number is 0 or too large; the file is damaged or no ONNX file")]
    FieldNumber,
    /// A wire type that does not exist.
    #[error(
        "field {number} has the wire type {wire_type}, which does not exist; the file is damaged or no ONNX file"
    )]
    WireType {
        /// The field's number.
        number: u32,
        /// Its wire type.
        wire_type: u32,
    },
    /// The end of a group that did not begin.
    #[error("group {number} ends and never began; the file is damaged or no ONNX file")]
    GroupEnd {
        /// The group's field number.
        number: u32,
    },
    /// A packed list does not hold a whole number of elements.
    #[error("a packed list of {size}-byte elements takes {length} bytes, which is no whole number of them")]
    PackedLength {
        /// The list's bytes.
        length: u64,
        /// The bytes of an element.
        size: u64,
    },
    /// Messages nested too deeply.
    #[error("messages are nested more than {limit} deep; raise `Limits::depth` if you trust the file")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The messages take more memory than allowed.
    #[error(
        "the messages take more than {limit} bytes of memory; raise `Limits::memory` if you trust the file"
    )]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
}

/// Bytes that are no message: what is wrong, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Place>);

#[derive(Clone, PartialEq, Eq)]
struct Place {
    problem: Problem,
    offset: u64,
    path: String,
}

impl DecodeError {
    /// A problem at an offset of the innermost message.
    #[cold]
    pub(crate) fn new(problem: Problem, offset: u64) -> DecodeError {
        DecodeError(Box::new(Place { problem, offset, path: String::new() }))
    }

    /// The same seen from the message around it: the field, its index if it is repeated, and where it starts.
    #[cold]
    pub(crate) fn within(mut self, field: &str, index: Option<usize>, start: u64) -> DecodeError {
        let place = &mut *self.0;
        place.offset = place.offset.saturating_add(start);
        let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
        let dot = if place.path.is_empty() { "" } else { "." };
        place.path = format!("{field}{index}{dot}{}", place.path);
        self
    }

    /// The same, with the name of the outermost message in front.
    #[cold]
    pub(crate) fn of(self, message: &str) -> DecodeError {
        self.within(message, None, 0)
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Where: bytes from the start of what was decoded.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// In which message, such as `ModelProto.graph.node[3].attribute[0]`.
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at byte {}: {}", self.0.path, self.0.offset, self.0.problem)
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.problem)
    }
}

/// Everything that loading, saving and finding payloads can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no model.
    #[error("cannot read {}: {source}", where_from(file))]
    Decode {
        /// The file, where there is one.
        file: Option<PathBuf>,
        /// What is wrong and where.
        source: DecodeError,
    },
    /// A file could not be opened or mapped.
    #[error(transparent)]
    Map(#[from] heirloom_mem::MapError),
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of more than 2 GiB, which other ONNX readers cannot open.
    #[error(
        "`{}` would take {bytes} bytes; ONNX readers open at most {limit}: keep large payloads in external data, or set `allow_over_2gib`",
        path.display()
    )]
    Over2Gib {
        /// The file that was not written.
        path: PathBuf,
        /// What it would take.
        bytes: u64,
        /// The most that every reader opens.
        limit: u64,
    },
    /// An `external_data` entry breaks the rules.
    #[error("`{name}`: external data: {source}")]
    External {
        /// The tensor or encoded value.
        name: String,
        /// Which rule.
        source: crate::external::ExternalError,
    },
}

fn where_from(file: &Option<PathBuf>) -> String {
    file.as_ref().map_or_else(|| "the model".into(), |file| format!("`{}`", file.display()))
}
