//! Reading forward through a file, every length checked against what is left.

use std::ops::Range;
use std::path::Path;

use crate::ImportError;

/// A place in the bytes of `file`.
pub(super) struct Cursor<'a> {
    file: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(file: &'a Path, bytes: &'a [u8]) -> Self {
        Self { file, bytes, at: 0 }
    }

    pub(super) fn file(&self) -> &'a Path {
        self.file
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Bytes from here to the end of the file.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Size of the file.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// At most `count` bytes from here, without moving.
    pub(super) fn peek(&self, count: usize) -> &'a [u8] {
        &self.bytes[self.at..][..count.min(self.left())]
    }

    /// The byte at `index`, which has been read past.
    pub(super) fn byte(&self, index: usize) -> u8 {
        self.bytes.get(index).copied().unwrap_or(0)
    }

    /// The next `count` bytes; `what` names them in the error.
    pub(super) fn take(&mut self, count: u64, what: &str) -> Result<Range<usize>, ImportError> {
        match usize::try_from(count).ok().filter(|count| *count <= self.left()) {
            Some(count) => {
                let start = self.at;
                self.at += count;
                Ok(start..self.at)
            }
            None => Err(self.truncated(count, what)),
        }
    }

    fn fixed<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ImportError> {
        match self.bytes[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.truncated(wide(N), what)),
        }
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, ImportError> {
        self.fixed(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, ImportError> {
        self.fixed(what).map(u64::from_le_bytes)
    }

    /// A string: its length, then its bytes.
    pub(super) fn string(&mut self, what: &str) -> Result<Range<usize>, ImportError> {
        let length = self.u64(what)?;
        self.take(length, what)
    }

    /// The UTF-8 string in `range`.
    pub(super) fn text(&self, range: Range<usize>, what: &str) -> Result<&'a str, ImportError> {
        let start = range.start;
        let fault = |e: std::str::Utf8Error| self.malformed(what, start, e.to_string());
        std::str::from_utf8(&self.bytes[range]).map_err(fault)
    }

    fn truncated(&self, needed: u64, what: &str) -> ImportError {
        ImportError::Truncated {
            file: self.file.into(),
            what: what.into(),
            offset: wide(self.at),
            needed,
            left: wide(self.left()),
        }
    }

    /// The error for a part that begins at `offset`.
    pub(super) fn malformed(&self, what: &str, offset: usize, fault: String) -> ImportError {
        ImportError::Malformed { file: self.file.into(), what: what.into(), offset: wide(offset), fault }
    }

    /// Fails unless `count` things of at least `least` bytes each can follow.
    pub(super) fn check_count(&self, count: u64, least: u64, what: &str) -> Result<(), ImportError> {
        let needed = count.saturating_mul(least);
        if needed > wide(self.left()) { Err(self.truncated(needed, what)) } else { Ok(()) }
    }
}

/// A size as the file writes it.
pub(super) fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
