//! The numbers of a model, from the file's metadata.

use crate::ImportError;
use crate::gguf::Gguf;
use crate::gguf::cursor::wide;

/// The most that a count can be, so that products of two stay far from overflow.
const MOST: u64 = 1 << 24;
/// The most elements that a head can have: tables of that size are made.
const MOST_OF_HEAD: usize = 1 << 16;

/// Sizes of a decoder.
#[derive(Debug, Clone)]
pub(in crate::gguf) struct Hyper {
    /// `block_count`.
    pub(super) layers: usize,
    /// `context_length`: positions that the model was trained for.
    pub(super) context: u64,
    /// `embedding_length`: elements of a token's state.
    pub(super) width: usize,
    /// `feed_forward_length`: elements of a token's state within a feed-forward network.
    pub(super) hidden: usize,
    /// `attention.head_count`.
    pub(super) heads: usize,
    /// `attention.head_count_kv`: heads of keys and values; queries share them in groups.
    pub(super) kv_heads: usize,
    /// `attention.key_length`: elements of a query and of a key.
    pub(super) key_size: usize,
    /// `attention.value_length`: elements of a value.
    pub(super) value_size: usize,
    /// `attention.layer_norm_rms_epsilon`.
    pub(super) epsilon: f64,
    /// Rows of the embedding.
    pub(super) vocabulary: usize,
}

impl Hyper {
    /// Number of layers.
    pub(in crate::gguf) fn layers(&self) -> usize {
        self.layers
    }

    /// Elements of a token's state.
    pub(in crate::gguf) fn width(&self) -> usize {
        self.width
    }

    /// Heads of the queries.
    pub(in crate::gguf) fn heads(&self) -> usize {
        self.heads
    }

    /// Positions that the model was trained for.
    pub(in crate::gguf) fn context(&self) -> u64 {
        self.context
    }

    pub(super) fn read(gguf: &Gguf, architecture: &str) -> Result<Self, ImportError> {
        let keys = Keys { gguf, architecture };
        let width = keys.count("embedding_length")?;
        let heads = keys.count("attention.head_count")?;
        let default = (width / heads).max(1);
        let layers = keys.count("block_count")?;
        keys.check("block_count", layers, gguf.tensors().len(), "tensors in the file")?;
        let key_size = keys.count_or("attention.key_length", default)?;
        keys.check("attention.key_length", key_size, MOST_OF_HEAD, "elements of a head")?;
        Ok(Self {
            layers,
            context: gguf.unsigned(&keys.key("context_length"), &keys.reader())?,
            width,
            hidden: keys.count("feed_forward_length")?,
            heads,
            kv_heads: keys.count_or("attention.head_count_kv", heads)?,
            key_size,
            value_size: keys.count_or("attention.value_length", default)?,
            epsilon: gguf.float(&keys.key("attention.layer_norm_rms_epsilon"), &keys.reader())?,
            vocabulary: vocabulary(gguf, architecture)?,
        })
    }
}

fn vocabulary(gguf: &Gguf, architecture: &str) -> Result<usize, ImportError> {
    let embedding = gguf.tensor("token_embd.weight").ok_or_else(|| ImportError::MissingTensor {
        file: gguf.file().into(),
        tensor: "token_embd.weight".into(),
        architecture: architecture.into(),
    })?;
    let rows = embedding.dims().get(1).copied().unwrap_or(0);
    Ok(usize::try_from(rows.min(MOST)).unwrap_or(0))
}

/// Metadata under an architecture's prefix.
pub(in crate::gguf) struct Keys<'a> {
    pub(in crate::gguf) gguf: &'a Gguf,
    pub(super) architecture: &'a str,
}

impl Keys<'_> {
    /// The whole key.
    pub(in crate::gguf) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// Who needs it, for messages.
    pub(in crate::gguf) fn reader(&self) -> String {
        format!("architecture `{}`", self.architecture)
    }

    /// Whether the file has it.
    pub(in crate::gguf) fn present(&self, name: &str) -> bool {
        self.gguf.value(&self.key(name)).is_some()
    }

    /// A count of at least 1.
    pub(in crate::gguf) fn count(&self, name: &str) -> Result<usize, ImportError> {
        let key = self.key(name);
        let count = self.gguf.unsigned(&key, &self.reader())?;
        match usize::try_from(count).ok().filter(|_| (1..=MOST).contains(&count)) {
            Some(count) => Ok(count),
            None => {
                let value = crate::gguf::Value::Unsigned(count);
                Err(self.gguf.bad_value(&key, &format!("a count from 1 to {MOST}"), &value))
            }
        }
    }

    /// Fails when `value`, which is or follows from `name`, is more than `most`.
    fn check(&self, name: &str, value: usize, most: usize, what: &str) -> Result<(), ImportError> {
        if value <= most {
            return Ok(());
        }
        let actual = crate::gguf::Value::Unsigned(wide(value));
        Err(self.gguf.bad_value(&self.key(name), &format!("at most {most}, the {what}"), &actual))
    }

    /// A count of at least 1 where the file has it.
    pub(in crate::gguf) fn count_or(&self, name: &str, default: usize) -> Result<usize, ImportError> {
        if self.present(name) { self.count(name) } else { Ok(default) }
    }

    /// A float, or `default` where the file has none.
    pub(in crate::gguf) fn float_or(&self, name: &str, default: f64) -> Result<f64, ImportError> {
        if self.present(name) { self.gguf.float(&self.key(name), &self.reader()) } else { Ok(default) }
    }
}

/// A count as a float; counts here are at most 2^24.
pub(in crate::gguf) fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// The extent of an axis as ONNX writes it.
pub(super) fn signed(extent: usize) -> i64 {
    i64::try_from(wide(extent)).unwrap_or(i64::MAX)
}

/// The nearest f32.
#[allow(clippy::as_conversions)]
pub(super) fn narrow(value: f64) -> f32 {
    value as f32
}
