//! Payloads in files of their own: where an entry points, what it may point at, and the bytes there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heirloom_mem::Bytes;

use crate::StringStringEntryProto;
use crate::wire::wide;

/// Why external data cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// No `location` entry.
    #[error("there is no `location`; add one that names a file beside the model")]
    NoLocation,
    /// An encoded value without a `length` entry.
    #[error("there is no `length`; an encoded value must say how long its payload is")]
    NoLength,
    /// A key occurs twice.
    #[error("the key `{key}` occurs twice; keep one")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// `offset` or `length` is no number of bytes.
    #[error("`{key}` is `{value}`, which is no number of bytes")]
    BadNumber {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// `offset + length` is more than any file can hold.
    #[error("offset {offset} and length {length} are more than any file holds")]
    Overflow {
        /// The offset in bytes.
        offset: u64,
        /// The length in bytes.
        length: u64,
    },
    /// A location that may not be used, whatever lies there.
    #[error(
        "the location `{location}` {fault}; it must name a file in the model's folder by a relative path"
    )]
    BadLocation {
        /// The location.
        location: String,
        /// What is wrong with it.
        fault: LocationFault,
    },
    /// Both `raw_data` and `external_data`, or external data without the EXTERNAL location.
    #[error("{fault}")]
    Contradiction {
        /// What contradicts what.
        fault: PayloadFault,
    },
    /// The model was given as bytes.
    #[error(
        "the location `{location}` needs a base directory, and the model was given as bytes without one; give the folder that the location is relative to"
    )]
    NoBaseDirectory {
        /// The location.
        location: String,
    },
    /// The file, or the folder, is not there or cannot be read.
    #[error("`{}` cannot be opened: {source}; a model's files stay together: put it back there", path.display())]
    Open {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file could not be mapped.
    #[error(transparent)]
    Map(#[from] heirloom_mem::MapError),
    /// A symbolic link leads out of the model's folder.
    #[error(
        "the location `{location}` leads to `{}`, out of the model's folder; if you trust it, allow its folder as an external root",
        target.display()
    )]
    LeadsOut {
        /// The location.
        location: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// The extent does not lie in the file.
    #[error(
        "bytes {offset} to {end} were asked for, and `{}` has {file_length}; the file is cut short, or of another model",
        path.display()
    )]
    OutOfFile {
        /// The file.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// One past the last byte.
        end: u64,
        /// The file's length.
        file_length: u64,
    },
}

/// What is wrong with a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocationFault {
    /// No characters.
    #[error("is empty")]
    Empty,
    /// A NUL character.
    #[error("contains a NUL character")]
    Nul,
    /// No UTF-8.
    #[error("is no valid UTF-8")]
    NotUtf8,
    /// `/…` or `\…`.
    #[error("is an absolute path")]
    Absolute,
    /// `C:…`.
    #[error("names a drive")]
    Drive,
    /// A component `..`.
    #[error("climbs to a parent folder")]
    Parent,
}

/// How a value's fields contradict one another about where its payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadFault {
    /// Two payloads.
    #[error("the value has both inline data and `external_data`; keep one")]
    Both,
    /// `external_data`, and the location is not EXTERNAL.
    #[error(
        "the value has `external_data` and its `data_location` is not EXTERNAL; set it, or remove the entries"
    )]
    NotDeclared,
    /// A location without a name.
    #[error("the value's `data_location` has the unknown value {0}")]
    UnknownLocation(i32),
}

/// Where a payload lies: the entries of `external_data`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalLocation {
    /// A relative path with `/`, below the model's folder.
    pub location: String,
    /// The first byte.
    pub offset: u64,
    /// How many bytes; `None`: to the file's end (tensors only).
    pub length: Option<u64>,
    /// A checksum as the writer gave it; nobody checks it here.
    pub checksum: Option<String>,
}

impl ExternalLocation {
    /// An extent of a file.
    ///
    /// # Errors
    /// When the location breaks the rules of [`check_location`] or the extent overflows.
    pub fn new(location: &str, offset: u64, length: u64) -> Result<ExternalLocation, ExternalError> {
        check_location(location)?;
        check_extent(offset, length)?;
        Ok(ExternalLocation { location: location.into(), offset, length: Some(length), checksum: None })
    }

    /// Reads the entries. Keys other than `location`, `offset`, `length` and `checksum` are left alone.
    /// No file is touched.
    ///
    /// # Errors
    /// When a key occurs twice, the location is missing or breaks the rules, or a number is none.
    pub fn parse(entries: &[StringStringEntryProto]) -> Result<ExternalLocation, ExternalError> {
        let (mut location, mut checksum) = (None, None);
        let (mut offset, mut length) = (None, None);
        for (index, entry) in entries.iter().enumerate() {
            if entries[..index].iter().any(|earlier| earlier.key_bytes() == entry.key_bytes()) {
                return Err(ExternalError::DuplicateKey { key: entry.key().into() });
            }
            match entry.key() {
                "location" => {
                    if std::str::from_utf8(entry.value_bytes()).is_err() {
                        let location = String::from_utf8_lossy(entry.value_bytes()).into();
                        return Err(ExternalError::BadLocation { location, fault: LocationFault::NotUtf8 });
                    }
                    location = Some(entry.value());
                }
                "offset" => offset = Some(number("offset", entry.value())?),
                "length" => length = Some(number("length", entry.value())?),
                "checksum" => checksum = Some(entry.value().to_owned()),
                _ => {}
            }
        }
        let location = location.ok_or(ExternalError::NoLocation)?;
        check_location(location)?;
        let offset = offset.unwrap_or(0);
        check_extent(offset, length.unwrap_or(0))?;
        Ok(ExternalLocation { location: location.to_owned(), offset, length, checksum })
    }

    /// The entries that say the same, in the order in which ONNX's own tools write them.
    pub fn to_entries(&self) -> Vec<StringStringEntryProto> {
        let length = self.length.map(|length| length.to_string());
        let pairs = [
            ("location", Some(self.location.clone())),
            ("offset", Some(self.offset.to_string())),
            ("length", length),
            ("checksum", self.checksum.clone()),
        ];
        let entry = |(key, value): (&str, Option<String>)| {
            let mut entry = StringStringEntryProto::new();
            entry.set_key(key);
            entry.set_value(&value?);
            Some(entry)
        };
        pairs.into_iter().filter_map(entry).collect()
    }
}

fn number(key: &'static str, value: &str) -> Result<u64, ExternalError> {
    let digits_only = value.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = if digits_only { value.parse().ok() } else { None };
    parsed.ok_or_else(|| ExternalError::BadNumber { key, value: value.into() })
}

fn check_extent(offset: u64, length: u64) -> Result<(), ExternalError> {
    match offset.checked_add(length) {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(ExternalError::Overflow { offset, length }),
    }
}

/// Whether a location stays below the model's folder by its text alone: relative, no `..`, no drive, no NUL, not
/// empty. Both kinds of slashes count, so that a file means the same on every system.
///
/// # Errors
/// [`ExternalError::BadLocation`] with the rule that it breaks.
pub fn check_location(location: &str) -> Result<(), ExternalError> {
    let mut start = location.chars();
    let fault = if location.is_empty() {
        LocationFault::Empty
    } else if location.contains('\0') {
        LocationFault::Nul
    } else if location.starts_with(['/', '\\']) {
        LocationFault::Absolute
    } else if start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':') {
        LocationFault::Drive
    } else if location.split(['/', '\\']).any(|part| part == "..") {
        LocationFault::Parent
    } else {
        return Ok(());
    };
    Err(ExternalError::BadLocation { location: location.into(), fault })
}

/// Finds and maps the files that external payloads lie in, each file once.
#[derive(Debug, Default)]
pub struct ExternalResolver {
    base_dir: Option<PathBuf>,
    external_roots: Vec<PathBuf>,
    /// By real path.
    files: Mutex<HashMap<PathBuf, Bytes>>,
}

impl ExternalResolver {
    /// For a model that was given as bytes, without a base directory: every location is refused. The process'
    /// current directory plays no part.
    pub fn without_base_dir() -> ExternalResolver {
        ExternalResolver::default()
    }

    /// Locations are relative to this folder.
    ///
    /// # Errors
    /// When the folder is not there.
    pub fn new(base_dir: &Path) -> Result<ExternalResolver, ExternalError> {
        Ok(ExternalResolver { base_dir: Some(real_path(base_dir)?), ..ExternalResolver::default() })
    }

    /// Locations are relative to the folder of this file: where the name lies, not where a link leads.
    ///
    /// # Errors
    /// When the folder is not there.
    pub fn for_model(path: &Path) -> Result<ExternalResolver, ExternalError> {
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => ExternalResolver::new(folder),
            _ => ExternalResolver::new(Path::new(".")),
        }
    }

    /// Links may also lead into this folder.
    ///
    /// # Errors
    /// When the folder is not there.
    pub fn with_external_root(mut self, root: &Path) -> Result<ExternalResolver, ExternalError> {
        self.external_roots.push(real_path(root)?);
        Ok(self)
    }

    /// The folder that locations are relative to, as a real path.
    pub fn base_dir(&self) -> Option<&Path> {
        self.base_dir.as_deref()
    }

    /// The real path of a location.
    ///
    /// # Errors
    /// When the location breaks the rules, there is no base directory, nothing lies there, or a link leads out.
    pub fn path(&self, location: &str) -> Result<PathBuf, ExternalError> {
        check_location(location)?;
        let Some(base) = &self.base_dir else {
            return Err(ExternalError::NoBaseDirectory { location: location.into() });
        };
        let target = real_path(&base.join(location))?;
        if target.starts_with(base) || self.external_roots.iter().any(|root| target.starts_with(root)) {
            return Ok(target);
        }
        Err(ExternalError::LeadsOut { location: location.into(), target })
    }

    /// The bytes of a payload, in the mapped file. All payloads of a file share one mapping.
    ///
    /// # Errors
    /// As [`path`](Self::path), and when the file cannot be mapped or is too short.
    pub fn resolve(&self, place: &ExternalLocation) -> Result<Bytes, ExternalError> {
        let path = self.path(&place.location)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match files.get(&path) {
            Some(file) => file.clone(),
            None => {
                let file = Bytes::map_file(&path)?;
                files.insert(path.clone(), file.clone());
                file
            }
        };
        drop(files);
        let file_length = wide(file.len());
        let end = match place.length {
            Some(length) => place.offset.saturating_add(length),
            None => file_length.max(place.offset),
        };
        let (start, stop) = (usize::try_from(place.offset).ok(), usize::try_from(end).ok());
        let extent = start.zip(stop).and_then(|(start, stop)| file.get(start..stop));
        extent.ok_or(ExternalError::OutOfFile { path, offset: place.offset, end, file_length })
    }
}

fn real_path(path: &Path) -> Result<PathBuf, ExternalError> {
    path.canonicalize().map_err(|source| ExternalError::Open { path: path.into(), source })
}
