//! The methods of Python's strings, dictionaries and lists that templates call.

use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind};

/// `value.name(args)`.
pub(crate) fn call(value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => string(value.as_str().unwrap_or_default(), name, args),
        ValueKind::Map => map(value, name, args),
        ValueKind::Seq => list(value, name, args),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn string(text: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let is = |test: fn(char) -> bool| -> Result<Value, Error> {
        from_args::<()>(args)?;
        Ok(Value::from(!text.is_empty() && text.chars().all(test)))
    };
    Ok(match name {
        "strip" | "lstrip" | "rstrip" => {
            let (set,): (Option<&str>,) = from_args(args)?;
            let strips = |c: char| set.map_or_else(|| c.is_whitespace(), |set| set.contains(c));
            let text = if name == "rstrip" { text } else { text.trim_start_matches(strips) };
            Value::from(if name == "lstrip" { text } else { text.trim_end_matches(strips) })
        }
        "split" | "rsplit" => {
            let (separator, most): (Option<Value>, Option<i64>) = from_args(args)?;
            let most = most.and_then(|m| usize::try_from(m).ok()).unwrap_or(usize::MAX);
            split(text, separator.as_ref(), most, name == "rsplit")?
        }
        "splitlines" => {
            from_args::<()>(args)?;
            Value::from(text.lines().map(Value::from).collect::<Vec<_>>())
        }
        "startswith" | "endswith" => {
            let (wanted,): (Value,) = from_args(args)?;
            let matches = |wanted: &Value| {
                let wanted = wanted.as_str().unwrap_or_default();
                if name == "startswith" { text.starts_with(wanted) } else { text.ends_with(wanted) }
            };
            match wanted.kind() {
                ValueKind::String => Value::from(matches(&wanted)),
                ValueKind::Seq => Value::from(wanted.try_iter()?.any(|w| matches(&w))),
                kind => return Err(bad_argument(name, kind)),
            }
        }
        "removeprefix" | "removesuffix" => {
            let (part,): (&str,) = from_args(args)?;
            let removed =
                if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Value::from(removed.unwrap_or(text))
        }
        "replace" => {
            let (from, to, most): (&str, &str, Option<i64>) = from_args(args)?;
            match most.and_then(|m| usize::try_from(m).ok()) {
                Some(most) => Value::from(text.replacen(from, to, most)),
                None => Value::from(text.replace(from, to)),
            }
        }
        "find" | "rfind" | "index" => {
            let (part,): (&str,) = from_args(args)?;
            let at = if name == "rfind" { text.rfind(part) } else { text.find(part) };
            match at {
                Some(at) => Value::from(text[..at].chars().count()),
                None if name == "index" => {
                    return Err(Error::new(ErrorKind::InvalidOperation, format!("`{part}` not found")));
                }
                None => Value::from(-1),
            }
        }
        "count" => {
            let (part,): (&str,) = from_args(args)?;
            Value::from(text.matches(part).count())
        }
        "join" => {
            let (parts,): (Value,) = from_args(args)?;
            let parts: Vec<String> = parts.try_iter()?.map(|p| p.to_string()).collect();
            Value::from(parts.join(text))
        }
        "upper" => no_arguments(args, || text.to_uppercase())?,
        "lower" => no_arguments(args, || text.to_lowercase())?,
        "capitalize" => no_arguments(args, || capitalized(text))?,
        "title" => no_arguments(args, || title(text))?,
        "isdigit" | "isnumeric" => is(char::is_numeric)?,
        "isalpha" => is(char::is_alphabetic)?,
        "isalnum" => is(char::is_alphanumeric)?,
        "isspace" => is(char::is_whitespace)?,
        "isupper" => {
            no_arguments(args, || text.chars().any(char::is_uppercase) && text.to_uppercase() == text)?
        }
        "islower" => {
            no_arguments(args, || text.chars().any(char::is_lowercase) && text.to_lowercase() == text)?
        }
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}

fn map(value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let keys = || Ok::<Vec<Value>, Error>(value.try_iter()?.collect());
    Ok(match name {
        "keys" => {
            from_args::<()>(args)?;
            Value::from(keys()?)
        }
        "values" => {
            from_args::<()>(args)?;
            let values: Result<Vec<Value>, Error> = keys()?.iter().map(|key| value.get_item(key)).collect();
            Value::from(values?)
        }
        "items" => {
            from_args::<()>(args)?;
            let pair = |key: &Value| Ok(Tuple::from([key.clone(), value.get_item(key)?]).into());
            Value::from(keys()?.iter().map(pair).collect::<Result<Vec<Value>, Error>>()?)
        }
        "get" => {
            let (key, default): (Value, Option<Value>) = from_args(args)?;
            let found = value.get_item(&key)?;
            if found.is_undefined() { default.unwrap_or(Value::from(())) } else { found }
        }
        "copy" => {
            from_args::<()>(args)?;
            value.clone()
        }
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}

fn list(value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let (wanted,): (Value,) = match name {
        "count" | "index" => from_args(args)?,
        "copy" => return Ok(value.clone()),
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    };
    let mut items = value.try_iter()?;
    if name == "count" {
        return Ok(Value::from(items.filter(|item| *item == wanted).count()));
    }
    let place = items.position(|item| item == wanted);
    place
        .map(Value::from)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("{wanted} not found")))
}

/// Python's `split` and, `from_right`, `rsplit`, with at most `most` cuts.
fn split(text: &str, separator: Option<&Value>, most: usize, from_right: bool) -> Result<Value, Error> {
    let separator = separator.filter(|s| !s.is_none());
    let limit = most.saturating_add(1);
    let mut parts: Vec<&str> = match separator {
        None if most == usize::MAX => text.split_whitespace().collect(),
        None if from_right => split_white_from_right(text, most),
        None => split_white(text, most),
        Some(separator) => {
            let separator = separator.as_str().ok_or_else(|| bad_argument("split", separator.kind()))?;
            if separator.is_empty() {
                return Err(Error::new(ErrorKind::InvalidOperation, "split: the separator is empty"));
            }
            if from_right {
                text.rsplitn(limit, separator).collect()
            } else {
                text.splitn(limit, separator).collect()
            }
        }
    };
    if from_right && separator.is_some() {
        parts.reverse();
    }
    Ok(Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>()))
}

fn split_white(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).filter(|_| parts.len() < most).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    parts
}

fn split_white_from_right(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let cut = rest.char_indices().rfind(|(_, c)| c.is_whitespace()).filter(|_| parts.len() < most);
        let start = cut.map_or(0, |(at, c)| at + c.len_utf8());
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end();
    }
    parts.reverse();
    parts
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + &characters.as_str().to_lowercase()
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for character in text.chars() {
        if in_word {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
        in_word = character.is_alphabetic();
    }
    out
}

fn no_arguments<T: Into<Value>>(args: &[Value], result: impl FnOnce() -> T) -> Result<Value, Error> {
    from_args::<()>(args)?;
    Ok(result().into())
}

fn bad_argument(method: &str, kind: ValueKind) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("`{method}` does not take a value of kind `{kind}`"))
}
