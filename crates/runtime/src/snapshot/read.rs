//! Reading: nothing in the file is believed before its checksum is right, and everything is checked afterwards.

use std::path::Path;
use std::sync::Arc;

use heirloom_mem::{Bytes, MapError};
use heirloom_proto::{ModelProto, Payload};
use heirloom_types::{Catalogue, EncodedValue, Value, tensor_from_proto};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::tree::{self, Leaf};
use super::write::checksum;
use super::{SnapshotError, TREE, VERSION, model_digest};
use crate::session::Inner;

pub(super) fn load(session: &Inner, path: &Path) -> Result<Vec<(String, Value)>, SnapshotError> {
    // A pipe would be waited for.
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(MapError::NotAFile { path: path.into() }.into()),
        Err(source) => return Err(MapError::Io { path: path.into(), source }.into()),
    }
    let file = Bytes::map_file(path)?;
    let proto = decode(&file)?;
    let tree = metadata(&proto, TREE).ok_or_else(|| missing(TREE))?;
    let tree: Json =
        serde_json::from_str(&tree).map_err(|error| SnapshotError::Malformed(error.to_string()))?;
    let version = tree["version"].as_u64().ok_or_else(|| missing("version"))?;
    if version != VERSION {
        return Err(SnapshotError::Version { found: version, known: VERSION });
    }
    let expected = tree["model"].as_str().ok_or_else(|| missing("model"))?;
    let actual = model_digest(session.model())?;
    if expected != actual {
        return Err(SnapshotError::Model { expected: expected.into(), actual });
    }
    let leaves = leaves(&proto, &catalogue(session, &proto)?)?;
    let values = tree["values"].as_array().ok_or_else(|| missing("values"))?;
    let pair = |entry: &Json| {
        let input = entry["input"].as_str().ok_or_else(|| missing("input"))?;
        Ok((input.to_string(), tree::value(&entry["value"], &leaves)?))
    };
    values.iter().map(pair).collect()
}

fn missing(what: &str) -> SnapshotError {
    SnapshotError::NoState { reason: format!("it has no `{what}`") }
}

/// The file's message, if its last field is the checksum of everything before.
fn decode(file: &Bytes) -> Result<ModelProto, SnapshotError> {
    let sum = checksum([0; 32]).len();
    let covered = file.len().checked_sub(sum).ok_or(SnapshotError::Checksum)?;
    let (contents, found) = (file.slice(..covered), file.slice(covered..));
    if *found != *checksum(Sha256::digest(&contents).into()) {
        // Some other model, perhaps: then say so.
        return match ModelProto::decode(file.clone()) {
            Ok(proto) if metadata(&proto, TREE).is_none() => Err(missing(TREE)),
            _ => Err(SnapshotError::Checksum),
        };
    }
    ModelProto::decode(file.clone()).map_err(|error| SnapshotError::Malformed(error.to_string()))
}

fn metadata(proto: &ModelProto, key: &str) -> Option<String> {
    let entry = proto.metadata_props().iter().find(|entry| entry.key() == key)?;
    Some(entry.value().to_string())
}

/// The model's declarations where they are the file's too, so that both share them; else the file's.
fn catalogue(session: &Inner, proto: &ModelProto) -> Result<Catalogue, SnapshotError> {
    let found = Catalogue::from_protos(proto.struct_types(), None)?;
    let model = session.model().catalogue();
    let mut shared = Catalogue::clone(model);
    for ty in found.iter() {
        let type_id = ty.type_id().map_or(0, std::num::NonZeroU64::get);
        match model.get(type_id) {
            Some(own) if own != ty => return Err(SnapshotError::Declaration { type_id }),
            Some(_) => {}
            None => shared.define(ty).map_err(|_| SnapshotError::Declaration { type_id })?,
        }
    }
    Ok(shared)
}

fn leaves(proto: &ModelProto, types: &Catalogue) -> Result<FxHashMap<String, Leaf>, SnapshotError> {
    let mut leaves = FxHashMap::default();
    let Some(graph) = proto.graph() else { return Ok(leaves) };
    for tensor in graph.initializer() {
        let name = tensor.name().to_string();
        let value = tensor_from_proto(tensor, None)
            .map_err(|error| SnapshotError::Malformed(format!("value `{name}`: {error}")))?;
        add(&mut leaves, name, Leaf::Tensor(value))?;
    }
    for (at, encoded) in graph.encoded_initializer().iter().enumerate() {
        let path = format!("graph.encoded_initializer[{at}]");
        let malformed = |what: &str| SnapshotError::Malformed(format!("{path}: {what}"));
        let payload = match encoded.payload().map_err(|error| malformed(&error.to_string()))? {
            Payload::Raw(payload) => payload.clone(),
            Payload::Empty => Bytes::empty(),
            _ => return Err(malformed("its payload is not in the file")),
        };
        let value = EncodedValue::from_proto(encoded, types, payload)?;
        add(&mut leaves, value.name.clone(), Leaf::Encoded(Arc::new(value)))?;
    }
    Ok(leaves)
}

fn add(leaves: &mut FxHashMap<String, Leaf>, name: String, leaf: Leaf) -> Result<(), SnapshotError> {
    match leaves.insert(name.clone(), leaf) {
        None => Ok(()),
        Some(_) => Err(SnapshotError::Malformed(format!("two values are named `{name}`"))),
    }
}
