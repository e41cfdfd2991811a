//! The key-value pairs: where they lie, found by key.

use std::ops::Range;

use super::cursor::Cursor;
use super::value::{Value, ValueType};
use crate::ImportError;

/// Arrays of arrays may nest so deep.
const DEPTH: u32 = 8;

/// Spans of keys and values; nothing of them is copied.
pub(super) struct Metadata {
    /// Sorted by key.
    entries: Vec<Entry>,
}

struct Entry {
    key: Range<usize>,
    kind: ValueType,
    value: Range<usize>,
}

impl Metadata {
    /// Reads and checks `count` pairs.
    pub(super) fn read(cursor: &mut Cursor<'_>, count: u64) -> Result<Self, ImportError> {
        // A key of no bytes and a value of one byte.
        cursor.check_count(count, 8 + 4 + 1, "the metadata")?;
        let mut keyed = Vec::new();
        for index in 0..count {
            let what = || format!("key of metadata {index}");
            let range = cursor.string(&what())?;
            let key = cursor.text(range.clone(), &what())?;
            let what = format!("metadata `{key}`");
            let kind = value_type(cursor, &what)?;
            let start = cursor.at();
            skip(cursor, kind, &what, DEPTH)?;
            keyed.push((key, Entry { key: range, kind, value: start..cursor.at() }));
        }
        keyed.sort_by(|a, b| a.0.cmp(b.0));
        if let Some(pair) = keyed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let what = format!("metadata `{}`", pair[1].0);
            return Err(cursor.malformed(&what, pair[1].1.key.start, "the key occurs twice".into()));
        }
        Ok(Self { entries: keyed.into_iter().map(|(_, entry)| entry).collect() })
    }

    /// The keys, sorted; `bytes` is the file.
    pub(super) fn keys<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter_map(|e| std::str::from_utf8(&bytes[e.key.clone()]).ok())
    }

    /// The value of `key`; `bytes` is the file.
    pub(super) fn get<'a>(&self, bytes: &'a [u8], key: &str) -> Option<Value<'a>> {
        let by_key = |e: &Entry| bytes[e.key.clone()].cmp(key.as_bytes());
        let entry = &self.entries[self.entries.binary_search_by(by_key).ok()?];
        Value::read(entry.kind, &bytes[entry.value.clone()]).map(|(value, _)| value)
    }
}

fn value_type(cursor: &mut Cursor<'_>, what: &str) -> Result<ValueType, ImportError> {
    let at = cursor.at();
    let number = cursor.u32(what)?;
    let unknown = || cursor.malformed(what, at, format!("value type {number} does not exist (0 to 12 do)"));
    ValueType::from_number(number).ok_or_else(unknown)
}

/// Moves past one value, checking what it announces.
fn skip(cursor: &mut Cursor<'_>, kind: ValueType, what: &str, depth: u32) -> Result<(), ImportError> {
    match (kind, kind.width()) {
        (_, Some(width)) => {
            let range = cursor.take(width, what)?;
            let byte = cursor.byte(range.start);
            if kind == ValueType::Bool && byte > 1 {
                return Err(cursor.malformed(what, range.start, format!("a boolean is 0 or 1, not {byte}")));
            }
        }
        (ValueType::Array, _) => {
            let start = cursor.at();
            if depth == 0 {
                return Err(cursor.malformed(what, start, format!("arrays nest deeper than {DEPTH}")));
            }
            let element = value_type(cursor, what)?;
            let count = cursor.u64(what)?;
            match element.width() {
                Some(width) => {
                    cursor.take(count.saturating_mul(width), what)?;
                }
                None => {
                    cursor.check_count(count, 8, what)?;
                    for _ in 0..count {
                        skip(cursor, element, what, depth - 1)?;
                    }
                }
            }
        }
        _ => {
            cursor.string(what)?;
        }
    }
    Ok(())
}
