//! Values as a tree over leaves, and back.

use std::sync::Arc;

use heirloom_mem::Tensor;
use heirloom_types::{EncodedValue, MapKey, StructValue, Value};
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::SnapshotError;

/// What holds payload.
#[derive(Clone)]
pub(super) enum Leaf {
    Tensor(Tensor),
    Encoded(Arc<EncodedValue>),
}

/// Leaves with their names, in order.
pub(super) type Leaves = Vec<(String, Leaf)>;

/// The tree of `value`; its leaves are added to `leaves` under names that begin with `path`.
pub(super) fn of(value: &Value, path: &str, leaves: &mut Leaves) -> Result<Json, SnapshotError> {
    let mut leaf = |leaf: Leaf| {
        let name = format!("{}: {path}", leaves.len());
        leaves.push((name.clone(), leaf));
        name
    };
    Ok(match value {
        Value::Tensor(tensor) => match tensor.append_view() {
            Some((_, axis)) => json!({ "cache": leaf(Leaf::Tensor(tensor.clone())), "axis": axis }),
            None => json!({ "tensor": leaf(Leaf::Tensor(tensor.clone())) }),
        },
        Value::Encoded(encoded) => json!({ "encoded": leaf(Leaf::Encoded(encoded.clone())) }),
        Value::Struct(fields) => {
            let field = |(name, value): &(Arc<str>, Value)| {
                Ok(json!([**name, of(value, &format!("{path}.{name}"), leaves)?]))
            };
            json!({ "struct": fields.fields.iter().map(field).collect::<Result<Vec<_>, SnapshotError>>()? })
        }
        Value::Sequence(values) => {
            let element = |(at, value): (usize, &Value)| of(value, &format!("{path}[{at}]"), leaves);
            json!({ "sequence": values.iter().enumerate().map(element).collect::<Result<Vec<_>, _>>()? })
        }
        Value::Map(entries) => {
            let entry = |(key, value): &(MapKey, Value)| match key {
                MapKey::Int(key) => Ok(json!([key, of(value, &format!("{path}[{key}]"), leaves)?])),
                MapKey::String(_) => Err(unfit(path, "a map with string keys")),
            };
            json!({ "map": entries.iter().map(entry).collect::<Result<Vec<_>, _>>()? })
        }
        Value::Optional(None) => json!({ "optional": null }),
        Value::Optional(Some(value)) => json!({ "optional": of(value, path, leaves)? }),
        other => return Err(unfit(path, other.kind())),
    })
}

fn unfit(path: &str, kind: &str) -> SnapshotError {
    SnapshotError::Unfit { leaf: path.into(), reason: format!("it is a {kind}") }
}

/// The value that a tree stands for. The parser bounds the depth.
pub(super) fn value(tree: &Json, leaves: &FxHashMap<String, Leaf>) -> Result<Value, SnapshotError> {
    let malformed =
        |what: &str| SnapshotError::Malformed(format!("{what} in the tree of values: {}", short(tree)));
    let node = tree.as_object().ok_or_else(|| malformed("no object"))?;
    let axis = node.get("axis").map(|axis| axis.as_u64().and_then(|axis| usize::try_from(axis).ok()));
    let mut kinds = node.iter().filter(|(key, _)| *key != "axis");
    let (Some((kind, content)), None) = (kinds.next(), kinds.next()) else {
        return Err(malformed("not one kind"));
    };
    let leaf = || {
        let found = content.as_str().and_then(|name| leaves.get(name));
        found.cloned().ok_or_else(|| malformed("an unknown leaf"))
    };
    let list = || content.as_array().ok_or_else(|| malformed("no list"));
    let pair = |entry: &'_ Json| -> Result<(Json, Value), SnapshotError> {
        match entry.as_array().map(|pair| &pair[..]) {
            Some([key, tree]) => Ok((key.clone(), value(tree, leaves)?)),
            _ => Err(malformed("no pair")),
        }
    };
    Ok(match (&**kind, axis) {
        ("cache", Some(Some(axis))) => match leaf()? {
            Leaf::Tensor(tensor) => match tensor.to_append(axis) {
                Some(cache) => Value::Tensor(cache),
                None => return Err(malformed("no such axis, or misaligned rows,")),
            },
            Leaf::Encoded(_) => return Err(malformed("an encoded value as a cache")),
        },
        ("tensor", None) => match leaf()? {
            Leaf::Tensor(tensor) => Value::Tensor(tensor),
            Leaf::Encoded(_) => return Err(malformed("an encoded value as a tensor")),
        },
        ("encoded", None) => match leaf()? {
            Leaf::Encoded(encoded) => Value::Encoded(encoded),
            Leaf::Tensor(_) => return Err(malformed("a tensor as an encoded value")),
        },
        ("struct", None) => {
            let field = |entry: &Json| match pair(entry)? {
                (Json::String(name), value) => Ok((name.into(), value)),
                _ => Err(malformed("a field without name")),
            };
            let fields = list()?.iter().map(field).collect::<Result<Vec<_>, SnapshotError>>()?;
            Value::Struct(Arc::new(StructValue { fields }))
        }
        ("sequence", None) => {
            let values = list()?.iter().map(|tree| value(tree, leaves)).collect::<Result<Vec<_>, _>>()?;
            Value::Sequence(Arc::new(values))
        }
        ("map", None) => {
            let entry = |entry: &Json| {
                let (key, value) = pair(entry)?;
                Ok((MapKey::Int(key.as_i64().ok_or_else(|| malformed("a key that is no integer"))?), value))
            };
            let entries = list()?.iter().map(entry).collect::<Result<Vec<_>, SnapshotError>>()?;
            if entries.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(malformed("keys out of order"));
            }
            Value::Map(Arc::new(entries))
        }
        ("optional", None) if content.is_null() => Value::Optional(None),
        ("optional", None) => Value::Optional(Some(Arc::new(value(content, leaves)?))),
        _ => return Err(malformed("an unknown kind")),
    })
}

/// The begin of a tree, for messages.
fn short(tree: &Json) -> String {
    let mut text: String = tree.to_string().chars().take(80).collect();
    if text.len() >= 80 {
        text.push('…');
    }
    text
}
