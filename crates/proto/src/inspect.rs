//! Equality, printing and checks that walk any message.

use std::fmt;

use crate::encode::unknown_fields;
use crate::message::{FieldInfo, FieldKind, FieldValue, Message, fields};

/// Whether two messages of the same type have equal fields.
pub(crate) fn equal(a: &dyn Message, b: &dyn Message) -> bool {
    let (fields_a, fields_b) = (fields(a), fields(b));
    let equal_fields = |(a, b): (Pair<'_>, Pair<'_>)| a.0.number == b.0.number && equal_values(a.1, b.1);
    fields_a.len() == fields_b.len()
        && fields_a.into_iter().zip(fields_b).all(equal_fields)
        && unknown_fields(a) == unknown_fields(b)
}

type Pair<'a> = (&'static FieldInfo, FieldValue<'a>);

fn equal_values(a: FieldValue<'_>, b: FieldValue<'_>) -> bool {
    match (a, b) {
        (FieldValue::Text(a), FieldValue::Text(b)) => a == b,
        (FieldValue::Texts(a), FieldValue::Texts(b)) => a == b,
        (FieldValue::Payload(a), FieldValue::Payload(b)) => a == b,
        (FieldValue::Varint(a), FieldValue::Varint(b)) => a == b,
        (FieldValue::Float(a), FieldValue::Float(b)) => a.to_bits() == b.to_bits(),
        (FieldValue::Ints(a), FieldValue::Ints(b)) => a == b,
        (FieldValue::Floats(a), FieldValue::Floats(b)) => {
            a.iter().map(|value| value.to_bits()).eq(b.iter().map(|value| value.to_bits()))
        }
        (FieldValue::Packed(a), FieldValue::Packed(b)) => a.equals(b),
        (FieldValue::Message(a), FieldValue::Message(b)) => equal(a, b),
        (FieldValue::Messages(a), FieldValue::Messages(b)) => {
            a.len() == b.len()
                && (0..a.len()).all(|index| match (a.get(index), b.get(index)) {
                    (Some(a), Some(b)) => equal(a, b),
                    _ => false,
                })
        }
        _ => false,
    }
}

struct Shown<'a>(&'a dyn Message);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(self.0, f)
    }
}

/// Long lists and payloads are named by their size.
const SHOWN: usize = 16;

/// Prints the fields that are present.
pub(crate) fn debug(message: &dyn Message, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let info = message.info();
    let mut shown = f.debug_struct(info.name);
    for (field, value) in fields(message) {
        match value {
            FieldValue::Text(bytes) => shown.field(field.name, &String::from_utf8_lossy(bytes)),
            FieldValue::Texts(list) => shown.field(field.name, &list),
            FieldValue::Payload(bytes) => shown.field(field.name, &format_args!("{} bytes", bytes.len())),
            FieldValue::Varint(value) => shown.field(field.name, &value.cast_signed()),
            FieldValue::Float(value) => shown.field(field.name, &value),
            FieldValue::Ints(list) if list.len() <= SHOWN => shown.field(field.name, &list),
            FieldValue::Floats(list) if list.len() <= SHOWN => shown.field(field.name, &list),
            FieldValue::Packed(list) if list.length() <= 64 => shown.field(field.name, list.debug()),
            FieldValue::Ints(list) => shown.field(field.name, &format_args!("{} integers", list.len())),
            FieldValue::Floats(list) => shown.field(field.name, &format_args!("{} floats", list.len())),
            FieldValue::Packed(list) => {
                shown.field(field.name, &format_args!("{} packed bytes", list.length()))
            }
            FieldValue::Message(inner) => shown.field(field.name, &Shown(inner)),
            FieldValue::Messages(list) => {
                let inner: Vec<Shown<'_>> =
                    (0..list.len()).filter_map(|index| list.get(index).map(Shown)).collect();
                shown.field(field.name, &inner)
            }
        };
    }
    let unknown = unknown_fields(message);
    if !unknown.is_empty() {
        shown.field("unknown", &format_args!("{} fields", unknown.len()));
    }
    shown.finish()
}

pub(crate) fn enum_name(name: Option<&str>, value: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match name {
        Some(name) => f.write_str(name),
        None => write!(f, "{value}"),
    }
}

/// The path of the first string field that is no valid UTF-8.
pub(crate) fn find_invalid_utf8(message: &dyn Message) -> Option<String> {
    let info = message.info();
    search(message).map(|path| format!("{}.{path}", info.name))
}

fn search(message: &dyn Message) -> Option<String> {
    let is_invalid = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
    for (field, value) in fields(message) {
        let name = field.name;
        match value {
            FieldValue::Text(bytes) if field.kind == FieldKind::String && is_invalid(bytes) => {
                return Some(name.into());
            }
            FieldValue::Texts(list) if field.kind == FieldKind::String => {
                if let Some(index) = list.iter_bytes().position(is_invalid) {
                    return Some(format!("{name}[{index}]"));
                }
            }
            FieldValue::Message(inner) => {
                if let Some(path) = search(inner) {
                    return Some(format!("{name}.{path}"));
                }
            }
            FieldValue::Messages(list) => {
                for index in 0..list.len() {
                    if let Some(path) = list.get(index).and_then(search) {
                        return Some(format!("{name}[{index}].{path}"));
                    }
                }
            }
            _ => {}
        }
    }
    None
}
