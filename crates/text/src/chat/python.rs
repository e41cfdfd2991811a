//! Values printed as Python prints them: templates are written for Python's Jinja.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output};

/// How deep values may nest.
const DEPTH: usize = 64;

/// What `{{ value }}` prints.
pub(crate) fn write(out: &mut Output<'_>, value: &Value) -> Result<(), Error> {
    let failed = |_| Error::from(ErrorKind::WriteFailure);
    match value.as_str() {
        Some(text) => out.write_str(text).map_err(failed),
        None => {
            let mut text = String::new();
            repr(&mut text, value, 0)?;
            out.write_str(&text).map_err(failed)
        }
    }
}

fn repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(Error::new(ErrorKind::BadSerialization, "the value nests too deeply to print"));
    }
    match value.kind() {
        ValueKind::Undefined => {}
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            let tuple = value.is_tuple();
            out.push(if tuple { '(' } else { '[' });
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(out, &item, depth + 1)?;
            }
            if tuple && value.len() == Some(1) {
                out.push(',');
            }
            out.push(if tuple { ')' } else { ']' });
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(out, &key, depth + 1)?;
                out.push_str(": ");
                repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// A number as Python's `repr` writes it.
pub(crate) fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(number) = f64::try_from(value.clone()) else { return value.to_string() };
    if number.is_nan() {
        return "nan".to_owned();
    }
    // Rust and Python both write the shortest digits; they differ in the exponent.
    let text = format!("{number:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}

fn quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
}
