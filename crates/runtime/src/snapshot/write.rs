//! Writing: the wire format by hand, so that payloads go from where they lie to aligned places of the file.

use std::io::{self, Write};
use std::path::Path;

use heirloom_mem::Tensor;
use heirloom_proto::{EncodedValueProto, StructTypeProto};
use heirloom_types::{Catalogue, Layout, Value};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::tree::{self, Leaf, Leaves};
use super::{ALIGN, CHECKSUM, SnapshotError, TREE, VERSION, hex, model_digest};
use crate::session::Inner;

/// Field numbers of ONNX messages; 1000 on are ours.
mod field {
    pub(super) const MODEL_IR_VERSION: u32 = 1;
    pub(super) const MODEL_PRODUCER: u32 = 2;
    pub(super) const MODEL_GRAPH: u32 = 7;
    pub(super) const MODEL_OPSET: u32 = 8;
    pub(super) const MODEL_METADATA: u32 = 14;
    pub(super) const MODEL_STRUCT_TYPES: u32 = 1000;
    pub(super) const OPSET_VERSION: u32 = 2;
    pub(super) const ENTRY_KEY: u32 = 1;
    pub(super) const ENTRY_VALUE: u32 = 2;
    pub(super) const GRAPH_NAME: u32 = 2;
    pub(super) const GRAPH_INITIALIZER: u32 = 5;
    pub(super) const GRAPH_ENCODED: u32 = 1000;
    pub(super) const TENSOR_DIMS: u32 = 1;
    pub(super) const TENSOR_TYPE: u32 = 2;
    pub(super) const TENSOR_NAME: u32 = 8;
    pub(super) const TENSOR_RAW: u32 = 9;
    pub(super) const TENSOR_DOC: u32 = 12;
}

/// The IR version and opset of the file: those of the newest operators we know; there are no nodes.
const IR_VERSION: u64 = 11;
const OPSET: u64 = 24;

pub(super) fn save<'a>(
    session: &Inner,
    values: impl Iterator<Item = (&'a str, &'a Value)>,
    path: &Path,
) -> Result<(), SnapshotError> {
    let mut leaves = Leaves::new();
    let trees = values
        .map(|(input, value)| Ok(json!({ "input": input, "value": tree::of(value, input, &mut leaves)? })))
        .collect::<Result<Vec<_>, SnapshotError>>()?;
    let model = model_digest(session.model())?;
    let tree = json!({ "version": VERSION, "model": model, "values": trees }).to_string();
    let mut types = Catalogue::new();
    let mut encoded = Vec::new();
    for (name, leaf) in &leaves {
        let Leaf::Encoded(value) = leaf else { continue };
        let unfit = |error: heirloom_types::TypeError| SnapshotError::Unfit {
            leaf: name.clone(),
            reason: error.to_string(),
        };
        if let Layout::Struct(layout) = &value.layout
            && layout.type_id.is_some()
        {
            types.define(&layout.declaration).map_err(unfit)?;
        }
        let mut proto = value.to_proto().map_err(unfit)?;
        proto.set_name(name);
        encoded.push(proto);
    }
    let file = File { leaves: &leaves, encoded: &encoded, types: types.to_protos(), tree };
    heirloom_proto::replace(path, |to| {
        let mut to = Hashing { to: io::BufWriter::new(to), hash: Sha256::new() };
        file.write(&mut to)?;
        let sum = checksum(to.hash.finalize().into());
        to.to.write_all(&sum)?;
        to.to.flush()
    })?;
    Ok(())
}

/// The last field of a file whose other bytes have this digest.
pub(super) fn checksum(digest: [u8; 32]) -> Vec<u8> {
    let mut to = Vec::new();
    entry(&mut to, CHECKSUM, &hex(&digest));
    to
}

struct Hashing<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

struct File<'a> {
    leaves: &'a Leaves,
    encoded: &'a [EncodedValueProto],
    types: Vec<StructTypeProto>,
    tree: String,
}

impl File<'_> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut head = Vec::new();
        number(&mut head, field::MODEL_IR_VERSION, IR_VERSION);
        text(&mut head, field::MODEL_PRODUCER, "heirloom");
        let mut opset = Vec::new();
        number(&mut opset, field::OPSET_VERSION, OPSET);
        bytes(&mut head, field::MODEL_OPSET, &opset);
        entry(&mut head, TREE, &self.tree);
        for ty in &self.types {
            tag(&mut head, field::MODEL_STRUCT_TYPES, 2);
            varint(&mut head, ty.encoded_len());
            ty.encode_to(&mut head)?;
        }
        tag(&mut head, field::MODEL_GRAPH, 2);
        // Where tensors lie depends on how many digits the graph's length has.
        let (heads, len) = (1..=10)
            .map(|digits| self.graph(head.len() as u64 + digits))
            .zip(1..)
            .find_map(|((heads, len), digits)| (varint_len(len) == digits).then_some((heads, len)))
            .ok_or_else(|| io::Error::other("the state is larger than a file can be"))?;
        varint(&mut head, len);
        to.write_all(&head)?;
        let mut tensors = self.leaves.iter().filter_map(|(_, leaf)| match leaf {
            Leaf::Tensor(tensor) => Some(tensor),
            Leaf::Encoded(_) => None,
        });
        for head in heads {
            to.write_all(&head.bytes)?;
            if head.tensor {
                let mut outcome = Ok(());
                if let Some(tensor) = tensors.next() {
                    tensor.for_each_run(|run| {
                        if outcome.is_ok() {
                            outcome = to.write_all(run);
                        }
                    });
                }
                outcome?;
            }
        }
        for value in self.encoded {
            let mut head = Vec::new();
            tag(&mut head, field::GRAPH_ENCODED, 2);
            varint(&mut head, value.encoded_len());
            to.write_all(&head)?;
            value.encode_to(to)?;
        }
        Ok(())
    }

    /// What stands before each tensor's payload when the graph begins at byte `start` of the file, and the graph's length.
    fn graph(&self, start: u64) -> (Vec<Head>, u64) {
        let mut heads = Vec::new();
        let mut name = Vec::new();
        text(&mut name, field::GRAPH_NAME, "state");
        let mut at = start + name.len() as u64;
        heads.push(Head { bytes: name, tensor: false });
        for (name, leaf) in self.leaves {
            let Leaf::Tensor(tensor) = leaf else { continue };
            let head = Head::of(name, tensor, at);
            at += head.bytes.len() as u64 + tensor.byte_len() as u64;
            heads.push(head);
        }
        for value in self.encoded {
            let len = value.encoded_len();
            at += varint_len((u64::from(field::GRAPH_ENCODED) << 3) | 2) + varint_len(len) + len;
        }
        (heads, at - start)
    }
}

struct Head {
    bytes: Vec<u8>,
    /// A tensor's payload follows.
    tensor: bool,
}

impl Head {
    /// The begin of an initializer at byte `at` of the file: a text of blanks moves its payload to a multiple of
    /// [`ALIGN`].
    fn of(name: &str, tensor: &Tensor, at: u64) -> Head {
        let mut message = Vec::new();
        for &extent in tensor.shape() {
            number(&mut message, field::TENSOR_DIMS, extent as u64);
        }
        number(&mut message, field::TENSOR_TYPE, u64::from(tensor.dtype().onnx().unsigned_abs()));
        text(&mut message, field::TENSOR_NAME, name);
        let payload = tensor.byte_len() as u64;
        let head = |blanks: usize| {
            let mut message = Vec::from(&message[..]);
            text(&mut message, field::TENSOR_DOC, &" ".repeat(blanks));
            tag(&mut message, field::TENSOR_RAW, 2);
            varint(&mut message, payload);
            let mut bytes = Vec::new();
            tag(&mut bytes, field::GRAPH_INITIALIZER, 2);
            varint(&mut bytes, message.len() as u64 + payload);
            bytes.append(&mut message);
            bytes
        };
        // More blanks may lengthen a length, at most once.
        let bytes = (0..2 * ALIGN as usize)
            .map(head)
            .find(|head| (at + head.len() as u64).is_multiple_of(ALIGN))
            .unwrap_or_else(|| head(0));
        Head { bytes, tensor: true }
    }
}

fn varint(to: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        to.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

fn varint_len(n: u64) -> u64 {
    u64::from((64 - n.leading_zeros()).max(1).div_ceil(7))
}

fn tag(to: &mut Vec<u8>, field: u32, wire: u64) {
    varint(to, u64::from(field) << 3 | wire);
}

fn number(to: &mut Vec<u8>, field: u32, n: u64) {
    tag(to, field, 0);
    varint(to, n);
}

fn bytes(to: &mut Vec<u8>, field: u32, content: &[u8]) {
    tag(to, field, 2);
    varint(to, content.len() as u64);
    to.extend_from_slice(content);
}

fn text(to: &mut Vec<u8>, field: u32, content: &str) {
    bytes(to, field, content.as_bytes());
}

/// A metadata entry.
fn entry(to: &mut Vec<u8>, key: &str, value: &str) {
    let mut pair = Vec::new();
    text(&mut pair, field::ENTRY_KEY, key);
    text(&mut pair, field::ENTRY_VALUE, value);
    bytes(to, field::MODEL_METADATA, &pair);
}
