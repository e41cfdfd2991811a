//! Messages become bytes: one pass that measures, one that writes.

use std::io::{self, Write};

use heirloom_mem::Bytes;

use crate::message::{FieldInfo, FieldValue, Message};
use crate::wire::{FIXED32, LENGTH, Reader, VARINT, put_varint, varint_len, wide};

/// Pieces of this length and more go straight from where they lie to the writer.
const DIRECT: usize = 8 << 10;
/// Smaller ones are gathered up to this length.
const GATHER: usize = 64 << 10;

/// A field that a message kept without knowing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The number.
    pub number: u32,
    /// The wire type: 0 varint, 1 eight bytes, 2 length-delimited, 3 group, 5 four bytes.
    pub wire_type: u32,
    /// Tag and value as they stand in the file.
    pub bytes: Bytes,
}

pub(crate) fn encoded_len(message: &dyn Message) -> u64 {
    measure(message, &mut Vec::new(), false)
}

pub(crate) fn encode_to(message: &dyn Message, to: &mut dyn Write, canonical: bool) -> io::Result<()> {
    let mut sizes = Vec::new();
    measure(message, &mut sizes, canonical);
    let mut writer = Writer { to, gathered: Vec::new(), sizes: sizes.iter(), canonical };
    writer.message(message)?;
    writer.flush()
}

pub(crate) fn to_bytes(message: &dyn Message, canonical: bool) -> Bytes {
    if !canonical && let Some(span) = message.core().original() {
        return span.clone();
    }
    let mut bytes = Vec::new();
    encode_to(message, &mut bytes, canonical).expect("a vector takes all that is written to it");
    Bytes::from_vec(bytes)
}

pub(crate) fn unknown_fields(message: &dyn Message) -> Vec<UnknownField> {
    let mut fields = Vec::new();
    for span in message.core().spans_with_unknown() {
        each_unknown(message, span, |tag, range| {
            fields.push(UnknownField { number: tag >> 3, wire_type: tag & 7, bytes: span.slice(range) });
        });
    }
    fields
}

/// The span was read without error once, so that reading it again cannot fail.
fn each_unknown(message: &dyn Message, span: &Bytes, mut found: impl FnMut(u32, std::ops::Range<usize>)) {
    let info = message.info();
    let mut reader = Reader::new(span);
    while !reader.is_at_end() {
        let start = reader.at;
        let Ok(tag) = reader.tag() else { return };
        if reader.skip(tag).is_err() {
            return;
        }
        if !info.knows(tag) {
            found(tag, start..reader.at);
        }
    }
}

/// Calls `write` with each stretch of unknown fields.
fn each_unknown_stretch(
    message: &dyn Message,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    for span in message.core().spans_with_unknown() {
        let mut stretch = 0..0;
        let mut outcome = Ok(());
        each_unknown(message, span, |_, range| {
            if range.start == stretch.end {
                stretch.end = range.end;
            } else {
                let done = std::mem::replace(&mut stretch, range);
                if outcome.is_ok() && !done.is_empty() {
                    outcome = write(&span[done]);
                }
            }
        });
        outcome?;
        if !stretch.is_empty() {
            write(&span[stretch])?;
        }
    }
    Ok(())
}

fn tag_len(field: &FieldInfo) -> u64 {
    varint_len(u64::from(field.number) << 3)
}

fn delimited_len(length: u64) -> u64 {
    varint_len(length) + length
}

/// The message's length. Lengths of messages within are noted in `sizes` in the order of writing.
fn measure(message: &dyn Message, sizes: &mut Vec<u64>, canonical: bool) -> u64 {
    if !canonical && let Some(span) = message.core().original() {
        return wide(span.len());
    }
    let mut total = 0;
    message.visit(&mut |field, value| {
        let tag = tag_len(field);
        total += match value {
            FieldValue::Text(bytes) => tag + delimited_len(wide(bytes.len())),
            FieldValue::Texts(list) => {
                let lengths: u64 = list.iter_bytes().map(|bytes| varint_len(wide(bytes.len()))).sum();
                tag * wide(list.len()) + lengths + list.total_bytes()
            }
            FieldValue::Payload(bytes) => tag + delimited_len(wide(bytes.len())),
            FieldValue::Varint(value) => tag + varint_len(value),
            FieldValue::Float(_) => tag + 4,
            FieldValue::Ints(list) => {
                tag * wide(list.len())
                    + list.iter().map(|value| varint_len(value.cast_unsigned())).sum::<u64>()
            }
            FieldValue::Floats(list) => (tag + 4) * wide(list.len()),
            FieldValue::Packed(list) => tag + delimited_len(list.length()),
            FieldValue::Message(inner) => tag + delimited_len(measure_inner(inner, sizes, canonical)),
            FieldValue::Messages(list) => {
                let inner = (0..list.len()).filter_map(|index| list.get(index));
                inner.map(|inner| tag + delimited_len(measure_inner(inner, sizes, canonical))).sum()
            }
        };
    });
    let unknown = each_unknown_stretch(message, &mut |bytes| {
        total += wide(bytes.len());
        Ok(())
    });
    debug_assert!(unknown.is_ok());
    total
}

fn measure_inner(inner: &dyn Message, sizes: &mut Vec<u64>, canonical: bool) -> u64 {
    let at = sizes.len();
    sizes.push(0);
    let length = measure(inner, sizes, canonical);
    sizes[at] = length;
    length
}

struct Writer<'a> {
    to: &'a mut dyn Write,
    gathered: Vec<u8>,
    sizes: std::slice::Iter<'a, u64>,
    canonical: bool,
}

impl Writer<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }

    #[inline(never)]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= DIRECT {
            self.flush()?;
            return self.to.write_all(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.gathered.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    fn tag(&mut self, field: &FieldInfo, wire_type: u32) {
        put_varint(&mut self.gathered, u64::from(field.number << 3 | wire_type));
    }

    fn delimited(&mut self, field: &FieldInfo, bytes: &[u8]) -> io::Result<()> {
        self.tag(field, LENGTH);
        put_varint(&mut self.gathered, wide(bytes.len()));
        self.put(bytes)
    }

    fn inner(&mut self, field: &FieldInfo, inner: &dyn Message) -> io::Result<()> {
        self.tag(field, LENGTH);
        let length = self.sizes.next().copied().unwrap_or(0);
        put_varint(&mut self.gathered, length);
        self.message(inner)
    }

    fn message(&mut self, message: &dyn Message) -> io::Result<()> {
        if !self.canonical
            && let Some(span) = message.core().original()
        {
            return self.put(span);
        }
        let mut outcome = Ok(());
        message.visit(&mut |field, value| {
            if outcome.is_ok() {
                outcome = self.field(field, value);
            }
        });
        outcome?;
        each_unknown_stretch(message, &mut |bytes| self.put(bytes))
    }

    fn field(&mut self, field: &FieldInfo, value: FieldValue<'_>) -> io::Result<()> {
        match value {
            FieldValue::Text(bytes) => self.delimited(field, bytes)?,
            FieldValue::Texts(list) => {
                for bytes in list.iter_bytes() {
                    self.delimited(field, bytes)?;
                }
            }
            FieldValue::Payload(bytes) => self.delimited(field, bytes)?,
            FieldValue::Varint(value) => {
                self.tag(field, VARINT);
                put_varint(&mut self.gathered, value);
            }
            FieldValue::Float(value) => {
                self.tag(field, FIXED32);
                self.put(&value.to_le_bytes())?;
            }
            FieldValue::Ints(list) => {
                for value in list {
                    self.tag(field, VARINT);
                    put_varint(&mut self.gathered, value.cast_unsigned());
                    self.flush_if_full()?;
                }
            }
            FieldValue::Floats(list) => {
                for value in list {
                    self.tag(field, FIXED32);
                    self.put(&value.to_le_bytes())?;
                }
            }
            FieldValue::Packed(list) => match list.in_place() {
                Some(bytes) => self.delimited(field, bytes)?,
                None => {
                    self.tag(field, LENGTH);
                    put_varint(&mut self.gathered, list.length());
                    let mut outcome = Ok(());
                    list.write(&mut |bytes| {
                        if outcome.is_ok() {
                            outcome = self.put(bytes);
                        }
                    });
                    outcome?;
                }
            },
            FieldValue::Message(inner) => self.inner(field, inner)?,
            FieldValue::Messages(list) => {
                for inner in (0..list.len()).filter_map(|index| list.get(index)) {
                    self.inner(field, inner)?;
                }
            }
        }
        Ok(())
    }
}
