//! JSON as Python's `json.dumps` writes it: a space after `:` and `,`, no escapes for HTML.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::python;

/// The arguments of `json.dumps` that templates use.
pub(crate) struct Style {
    pub(crate) indent: Option<usize>,
    pub(crate) ensure_ascii: bool,
    pub(crate) sort_keys: bool,
}

/// How deep values may nest.
const DEPTH: usize = 64;

pub(crate) fn to_string(value: &Value, style: &Style) -> Result<String, Error> {
    let mut out = String::new();
    write(&mut out, value, style, 0)?;
    Ok(out)
}

fn write(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(Error::new(ErrorKind::BadSerialization, "the value nests too deeply for JSON"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&python::number(value)),
        ValueKind::String => string(out, value.as_str().unwrap_or_default(), style.ensure_ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut empty = true;
            for item in value.try_iter()? {
                separate(out, &mut empty, style, depth);
                write(out, &item, style, depth + 1)?;
            }
            close(out, ']', empty, style, depth);
        }
        ValueKind::Map => {
            out.push('{');
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort_by_key(ToString::to_string);
            }
            let mut empty = true;
            for key in keys {
                separate(out, &mut empty, style, depth);
                let name = match key.as_str() {
                    Some(name) => name.to_owned(),
                    None => to_string(&key, style)?,
                };
                string(out, &name, style.ensure_ascii);
                out.push_str(": ");
                write(out, &value.get_item(&key)?, style, depth + 1)?;
            }
            close(out, '}', empty, style, depth);
        }
        kind => {
            let message = format!("a value of kind `{kind}` is not JSON serializable");
            return Err(Error::new(ErrorKind::BadSerialization, message));
        }
    }
    Ok(())
}

/// Goes on to the next element.
fn separate(out: &mut String, empty: &mut bool, style: &Style, depth: usize) {
    match (std::mem::replace(empty, false), style.indent) {
        (true, None) => {}
        (false, None) => out.push_str(", "),
        (first, Some(indent)) => {
            out.push_str(if first { "\n" } else { ",\n" });
            out.extend(std::iter::repeat_n(' ', indent * (depth + 1)));
        }
    }
}

fn close(out: &mut String, bracket: char, empty: bool, style: &Style, depth: usize) {
    if let (false, Some(indent)) = (empty, style.indent) {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * depth));
    }
    out.push(bracket);
}

fn string(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ensure_ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
