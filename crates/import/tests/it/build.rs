//! GGUF files made by hand.

use std::path::Path;

use heirloom_import::ImportError;
use heirloom_import::gguf::Gguf;
use heirloom_mem::Bytes;

/// A GGUF file in the making.
#[derive(Clone)]
pub(crate) struct File {
    version: u32,
    values: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

/// A string: length, then bytes.
pub(crate) fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::from((text.len() as u64).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}

impl File {
    pub(crate) fn new() -> Self {
        Self { version: 3, values: Vec::new(), tensors: Vec::new(), data: Vec::new() }
    }

    pub(crate) fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a value given as its type's number and bytes.
    pub(crate) fn value(mut self, key: &str, kind: u32, bytes: &[u8]) -> Self {
        self.values.push([string(key), Vec::from(kind.to_le_bytes()), Vec::from(bytes)].concat());
        self
    }

    pub(crate) fn unsigned(self, key: &str, value: u32) -> Self {
        self.value(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn float(self, key: &str, value: f32) -> Self {
        self.value(key, 6, &value.to_le_bytes())
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.value(key, 8, &string(value))
    }

    /// Adds a description of a tensor, without data.
    pub(crate) fn describe(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> Self {
        let dims: Vec<u8> = (dims.len() as u32)
            .to_le_bytes()
            .into_iter()
            .chain(dims.iter().flat_map(|d| d.to_le_bytes()))
            .collect();
        let tail = [Vec::from(kind.to_le_bytes()), Vec::from(offset.to_le_bytes())].concat();
        self.tensors.push([string(name), dims, tail].concat());
        self
    }

    /// Adds a tensor with its data at the next multiple of 32.
    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], kind: u32, data: &[u8]) -> Self {
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        let offset = self.data.len() as u64;
        self.data.extend(data);
        self.describe(name, dims, kind, offset)
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(*b"GGUF");
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.values.len() as u64).to_le_bytes());
        bytes.extend(self.values.iter().chain(&self.tensors).flatten());
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(&self.data);
        bytes
    }

    pub(crate) fn read(&self) -> Result<Gguf, ImportError> {
        read(self.bytes())
    }
}

/// Reads bytes as the file `model.gguf`.
pub(crate) fn read(bytes: Vec<u8>) -> Result<Gguf, ImportError> {
    Gguf::from_bytes(Path::new("model.gguf"), Bytes::from_vec(bytes))
}

/// One value of each type, one array of each kind that occurs, and three tensors.
pub(crate) fn sample() -> File {
    let strings =
        [Vec::from(8u32.to_le_bytes()), Vec::from(2u64.to_le_bytes()), string("ab"), string("")].concat();
    let numbers = [Vec::from(5u32.to_le_bytes()), Vec::from(3u64.to_le_bytes())].concat();
    let numbers = [numbers, [1i32, -2, 3].iter().flat_map(|n| n.to_le_bytes()).collect()].concat();
    let q8_0: Vec<u8> = (0..68).collect();
    let floats: Vec<u8> = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|f| f.to_le_bytes()).collect();
    File::new()
        .text("general.name", "sample")
        .value("a.u8", 0, &[200])
        .value("a.i8", 1, &[200])
        .value("a.u16", 2, &40_000u16.to_le_bytes())
        .value("a.i16", 3, &(-3i16).to_le_bytes())
        .unsigned("a.u32", 4_000_000_000)
        .value("a.i32", 5, &(-5i32).to_le_bytes())
        .float("a.f32", 0.5)
        .value("a.bool", 7, &[1])
        .value("a.strings", 9, &strings)
        .value("a.numbers", 9, &numbers)
        .value("a.u64", 10, &u64::MAX.to_le_bytes())
        .value("a.i64", 11, &i64::MIN.to_le_bytes())
        .value("a.f64", 12, &0.25f64.to_le_bytes())
        .tensor("floats", &[3, 2], 0, &floats)
        .tensor("blocks", &[64, 1], 8, &q8_0)
        .tensor("one", &[], 26, &7i32.to_le_bytes())
}
