//! GGUF, the single-file format of llama.cpp: metadata and tensors of one model.
//!
//! [`Gguf::open`] maps the file and checks everything that it announces; metadata values and tensor data stay in the
//! mapping until they are asked for.

mod arch;
mod cursor;
mod decoder;
mod import;
mod kind;
mod metadata;
mod tensor;
mod value;
mod vocabulary;

use std::path::{Path, PathBuf};

use heirloom_mem::Bytes;

pub use arch::architecture_names;
pub use import::{CacheType, ImportOptions, import, overlay};
pub use kind::{Kind, Storage};
pub use tensor::Tensor;
pub use value::{Array, Value, ValueType};
pub use vocabulary::{VocabularyFields, vocabulary};

use self::cursor::Cursor;
use self::metadata::Metadata;
use self::tensor::Tensors;
use crate::ImportError;

/// Alignment of tensor data unless `general.alignment` says otherwise.
const DEFAULT_ALIGNMENT: u64 = 32;

/// An open GGUF file.
pub struct Gguf {
    file: PathBuf,
    bytes: Bytes,
    version: u32,
    metadata: Metadata,
    tensors: Tensors,
}

impl Gguf {
    /// Maps the file at `path` and checks it.
    ///
    /// # Errors
    /// The file cannot be mapped, is no GGUF file of version 2 or 3, ends too early, contradicts itself, or holds a
    /// tensor of a type that is not supported.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        Self::from_bytes(path, Bytes::map_file(path)?)
    }

    /// Checks the `bytes` of a file; `file` is its name in errors.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn from_bytes(file: &Path, bytes: Bytes) -> Result<Self, ImportError> {
        let mut cursor = Cursor::new(file, &bytes);
        let version = read_version(file, &mut cursor)?;
        let tensor_count = cursor.u64("the tensor count")?;
        let value_count = cursor.u64("the metadata count")?;
        let metadata = Metadata::read(&mut cursor, value_count)?;
        let alignment = alignment(file, &metadata, &bytes)?;
        let tensors = Tensors::read(&mut cursor, tensor_count, alignment)?;
        Ok(Self { file: file.into(), version, metadata, tensors, bytes })
    }

    /// The file's path, as it was opened.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The format's version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The metadata keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys(&self.bytes)
    }

    /// The metadata value of `key`.
    pub fn value(&self, key: &str) -> Option<Value<'_>> {
        self.metadata.get(&self.bytes, key)
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> &[Tensor] {
        self.tensors.all()
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.find(name)
    }

    /// The data of `tensor`: a slice of the mapping.
    pub fn data(&self, tensor: &Tensor) -> Bytes {
        self.bytes.slice(tensor.range())
    }

    /// A string of the metadata.
    ///
    /// # Errors
    /// Missing, no string, or no UTF-8.
    pub fn text(&self, key: &str, reader: &str) -> Result<&str, ImportError> {
        let value = self.required(key, reader)?;
        value.as_str().ok_or_else(|| self.bad_value(key, "a string", &value))
    }

    /// A non-negative integer of the metadata, of whatever width.
    ///
    /// # Errors
    /// Missing, no integer, or negative.
    pub fn unsigned(&self, key: &str, reader: &str) -> Result<u64, ImportError> {
        let value = self.required(key, reader)?;
        value.as_u64().ok_or_else(|| self.bad_value(key, "a non-negative integer", &value))
    }

    /// A float of the metadata, of either width.
    ///
    /// # Errors
    /// Missing, or no finite float.
    pub fn float(&self, key: &str, reader: &str) -> Result<f64, ImportError> {
        let value = self.required(key, reader)?;
        let float = value.as_f64().filter(|f| f.is_finite());
        float.ok_or_else(|| self.bad_value(key, "a finite float", &value))
    }

    /// A boolean of the metadata.
    ///
    /// # Errors
    /// Missing, or no boolean.
    pub fn boolean(&self, key: &str, reader: &str) -> Result<bool, ImportError> {
        let value = self.required(key, reader)?;
        value.as_bool().ok_or_else(|| self.bad_value(key, "a boolean", &value))
    }

    /// An array of the metadata.
    ///
    /// # Errors
    /// Missing, or no array of `element`.
    pub fn array(&self, key: &str, element: ValueType, reader: &str) -> Result<Array<'_>, ImportError> {
        let value = self.required(key, reader)?;
        let array = value.as_array().filter(|a| a.element() == element);
        array.ok_or_else(|| self.bad_value(key, &format!("an array of {}", element.name()), &value))
    }

    fn required(&self, key: &str, reader: &str) -> Result<Value<'_>, ImportError> {
        let missing =
            || ImportError::MissingKey { file: self.file.clone(), key: key.into(), reader: reader.into() };
        self.value(key).ok_or_else(missing)
    }

    /// The error for a value that is not as expected.
    pub fn bad_value(&self, key: &str, expected: &str, actual: &Value<'_>) -> ImportError {
        bad_value(&self.file, key, expected, actual)
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf")
            .field("file", &self.file)
            .field("version", &self.version)
            .field("tensors", &self.tensors().len())
            .finish_non_exhaustive()
    }
}

fn read_version(file: &Path, cursor: &mut Cursor<'_>) -> Result<u32, ImportError> {
    let found = cursor.peek(4);
    if found != b"GGUF" {
        return Err(ImportError::NotGguf { file: file.into(), found: Vec::from(found) });
    }
    cursor.u32("the magic")?;
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => Ok(version),
        _ if matches!(version.swap_bytes(), 1..=16) => Err(ImportError::BigEndian { file: file.into() }),
        _ => Err(ImportError::UnsupportedVersion { file: file.into(), version }),
    }
}

fn alignment(file: &Path, metadata: &Metadata, bytes: &[u8]) -> Result<u64, ImportError> {
    const KEY: &str = "general.alignment";
    let Some(value) = metadata.get(bytes, KEY) else { return Ok(DEFAULT_ALIGNMENT) };
    let alignment = value.as_u64().filter(|a| a.is_power_of_two());
    alignment.ok_or_else(|| bad_value(file, KEY, "a power of two", &value))
}

fn bad_value(file: &Path, key: &str, expected: &str, actual: &Value<'_>) -> ImportError {
    ImportError::BadValue {
        file: file.into(),
        key: key.into(),
        expected: expected.into(),
        actual: actual.to_string(),
    }
}
