//! Bytes become messages: one merge loop for all of them.

use heirloom_mem::Bytes;
use smallvec::SmallVec;

use crate::error::{DecodeError, Problem};
use crate::message::{FieldInfo, FieldKind, Message, Slot, fields};
use crate::text::Text;
use crate::wire::{FIXED32, LENGTH, Reader, VARINT, low32, wide};

/// What decoding may use at most.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How deep messages may be nested. The default is 100, as in other protobuf readers.
    pub depth: usize,
    /// How much memory the messages may take, in bytes, without what they share with the file.
    pub memory: u64,
}

impl Limits {
    /// The default for this many bytes: a depth of 100, and memory of 16 MiB plus 32 times the length, 8 GiB at
    /// most. Payloads do not count, so real models stay far below: a node takes 3 to 6 times its bytes.
    pub fn for_length(bytes: usize) -> Limits {
        let memory = wide(bytes).saturating_mul(32).saturating_add(16 << 20);
        Limits { depth: 100, memory: memory.min(8 << 30) }
    }

    /// The same with another depth. Beyond a few thousand, a hostile file can exhaust the stack.
    pub fn with_depth(self, depth: usize) -> Limits {
        Limits { depth, ..self }
    }

    /// The same with another memory limit.
    pub fn with_memory(self, memory: u64) -> Limits {
        Limits { memory, ..self }
    }
}

struct Budget<'a> {
    limits: &'a Limits,
    memory_left: u64,
    depth_left: usize,
}

impl Budget<'_> {
    fn too_large(&self) -> Problem {
        Problem::TooLarge { limit: self.limits.memory }
    }

    fn allows(&self, bytes: u64) -> Result<(), Problem> {
        if bytes <= self.memory_left { Ok(()) } else { Err(self.too_large()) }
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Problem> {
        self.allows(bytes)?;
        self.memory_left -= bytes;
        Ok(())
    }
}

/// Reads `bytes` into an empty message.
pub(crate) fn decode(message: &mut dyn Message, bytes: Bytes, limits: &Limits) -> Result<(), DecodeError> {
    let mut budget = Budget { limits, memory_left: limits.memory, depth_left: limits.depth };
    merge(message, bytes, &mut budget).map_err(|error| error.of(message.info().name))
}

/// Reads `span` into a message that is empty or was read already; then the new fields win, as protobuf merges.
fn merge(message: &mut dyn Message, span: Bytes, budget: &mut Budget<'_>) -> Result<(), DecodeError> {
    let (core, cost) = message.core_mut();
    if core.span.is_some() {
        // A singular message that occurs twice. Its strings move to the table: work that must be paid for.
        let held: u64 = core.spans().map(|span| wide(span.len())).sum();
        budget.charge(held).map_err(|problem| DecodeError::new(problem, 0))?;
        anchor_texts(message);
        message.core_mut().0.retire_span();
    }
    budget.charge(cost).map_err(|problem| DecodeError::new(problem, 0))?;
    match budget.depth_left.checked_sub(1) {
        Some(left) => budget.depth_left = left,
        None => return Err(DecodeError::new(Problem::TooDeep { limit: budget.limits.depth }, 0)),
    }
    let mut reader = Reader::new(&span);
    while !reader.is_at_end() {
        let start = reader.at;
        match field(message, &span, &mut reader, budget) {
            Ok(()) => {}
            Err(Fault::Here(problem)) => return Err(DecodeError::new(problem, wide(start))),
            Err(Fault::At(problem, at)) => return Err(DecodeError::new(problem, wide(at))),
            Err(Fault::Within { error, number, index, start }) => {
                let name = field_name(message, number);
                return Err(error.within(name, index, wide(start)));
            }
        }
    }
    budget.depth_left += 1;
    message.core_mut().0.span = Some(span);
    Ok(())
}

fn field_name(message: &dyn Message, number: u32) -> &'static str {
    let fields = message.info().fields;
    fields.iter().find(|field| field.number == number).map_or("", |field| field.name)
}

enum Fault {
    /// At the field's start.
    Here(Problem),
    At(Problem, usize),
    Within {
        error: DecodeError,
        number: u32,
        index: Option<usize>,
        start: usize,
    },
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault::Here(problem)
    }
}

/// Reads one field.
#[inline]
fn field(
    message: &mut dyn Message,
    span: &Bytes,
    reader: &mut Reader<'_>,
    budget: &mut Budget<'_>,
) -> Result<(), Fault> {
    let tag = reader.tag()?;
    let number = tag >> 3;
    match message.slot(tag) {
        Slot::Unknown => {
            reader.skip(tag)?;
            message.core_mut().0.note_unknown();
        }
        Slot::Text(core, text) => {
            let range = reader.delimited()?;
            *text = core.found(span, range);
        }
        Slot::Texts(core, list) => {
            let range = reader.delimited()?;
            budget.charge(wide(size_of::<Text>()))?;
            list.push(core.found(span, range));
        }
        Slot::Payload(payload) => *payload = Some(span.slice(reader.delimited()?)),
        Slot::Int32(value) => *value = Some(low32(reader.varint()?).cast_signed()),
        Slot::Int64(value) => *value = Some(reader.varint()?.cast_signed()),
        Slot::Uint32(value) => *value = Some(low32(reader.varint()?)),
        Slot::Uint64(value) => *value = Some(reader.varint()?),
        Slot::Float(value) => *value = Some(f32::from_le_bytes(reader.fixed()?)),
        Slot::Int64Member(value) => *value = reader.varint()?.cast_signed(),
        Slot::Uint64Member(value) => *value = reader.varint()?,
        Slot::Ints(list) => {
            if tag & 7 == VARINT {
                budget.charge(wide(size_of::<i64>()))?;
                list.push(reader.varint()?.cast_signed());
            } else {
                let range = reader.delimited()?;
                let mut packed = Reader { bytes: &reader.bytes[..range.end], at: range.start };
                while !packed.is_at_end() {
                    budget.charge(wide(size_of::<i64>()))?;
                    let at = packed.at;
                    list.push(packed.varint().map_err(|problem| Fault::At(problem, at))?.cast_signed());
                }
            }
        }
        Slot::Floats(list) => {
            if tag & 7 == FIXED32 {
                budget.charge(wide(size_of::<f32>()))?;
                list.push(f32::from_le_bytes(reader.fixed()?));
            } else {
                let range = reader.delimited()?;
                let (chunks, rest) = reader.bytes[range.clone()].as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(Problem::PackedLength { length: wide(range.len()), size: 4 }.into());
                }
                budget.charge(wide(range.len()))?;
                list.extend(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
        }
        Slot::Packed(list) => {
            if tag & 7 == LENGTH {
                let range = reader.delimited()?;
                let start = range.start;
                list.add(&span.slice(range), &mut |bytes| budget.charge(bytes))
                    .map_err(|(problem, at)| Fault::At(problem, start + at))?;
            } else {
                budget.charge(wide(list.count_in_place() + 1).saturating_mul(wide(size_of::<u64>())))?;
                list.add_one(reader)?;
            }
        }
        Slot::Message(inner) => {
            let range = reader.delimited()?;
            let start = range.start;
            merge(inner, span.slice(range), budget).map_err(|error| Fault::Within {
                error,
                number,
                index: None,
                start,
            })?;
        }
        Slot::Messages(list) => {
            let range = reader.delimited()?;
            if list.is_full() {
                // Counted, not claimed: exactly as many as there are.
                let more = reader.run_length(tag) + 1;
                budget.allows(wide(more).saturating_mul(wide(list.element_size())))?;
                list.reserve(more);
            }
            let start = range.start;
            if let Err(error) = merge(list.add(), span.slice(range), budget) {
                return Err(Fault::Within { error, number, index: Some(list.len() - 1), start });
            }
        }
    }
    Ok(())
}

/// Makes the strings of this message independent of its span.
pub(crate) fn anchor_texts(message: &mut dyn Message) {
    let is_text = |field: &FieldInfo| matches!(field.kind, FieldKind::String | FieldKind::Bytes);
    let present: SmallVec<[u32; 8]> =
        fields(message).iter().filter(|(field, _)| is_text(field)).map(|(field, _)| field.number).collect();
    for number in present {
        match message.slot(number << 3 | LENGTH) {
            Slot::Text(core, text) => core.anchor(text),
            Slot::Texts(core, list) => list.iter_mut().for_each(|text| core.anchor(text)),
            _ => {}
        }
    }
}
