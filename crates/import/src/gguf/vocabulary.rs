//! The vocabulary that a GGUF file carries, as plain fields for whoever makes a tokenizer of them.

use super::{Array, Gguf, ValueType};
use crate::ImportError;

/// The `tokenizer.*` metadata. What the file lacks is `None`; arrays stay in the mapping.
#[derive(Debug, Clone)]
pub struct VocabularyFields<'a> {
    /// `tokenizer.ggml.model`: the algorithm.
    pub model: &'a str,
    /// `tokenizer.ggml.pre`: how text is split into words.
    pub pre: Option<&'a str>,
    /// `tokenizer.ggml.tokens`: strings by id.
    pub tokens: Array<'a>,
    /// `tokenizer.ggml.scores`: one f32 per token.
    pub scores: Option<Array<'a>>,
    /// `tokenizer.ggml.token_type`: one i32 per token.
    pub token_types: Option<Array<'a>>,
    /// `tokenizer.ggml.merges`: strings `left right`.
    pub merges: Option<Array<'a>>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`.
    pub eot: Option<u32>,
    /// `tokenizer.ggml.eom_token_id`.
    pub eom: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`.
    pub unknown: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub padding: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `tokenizer.chat_template`: Jinja source.
    pub chat_template: Option<&'a str>,
}

/// Reads the vocabulary's fields.
///
/// # Errors
/// No `tokenizer.ggml.model` or `tokenizer.ggml.tokens`, or a field of the wrong type.
pub fn vocabulary(gguf: &Gguf) -> Result<VocabularyFields<'_>, ImportError> {
    const READER: &str = "a tokenizer";
    let strings = |key: &str| gguf.array(key, ValueType::String, READER);
    let present = |key: &str| gguf.value(key).is_some();
    let id = |name: &str| -> Result<Option<u32>, ImportError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(value) = gguf.value(&key) else { return Ok(None) };
        // Converters write -1 for a token that the model does not have.
        if value.as_i64() == Some(-1) || value.as_u64() == Some(u32::MAX.into()) {
            return Ok(None);
        }
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.map(Some).ok_or_else(|| gguf.bad_value(&key, "a token id", &value))
    };
    let flag = |name: &str| {
        let key = format!("tokenizer.ggml.{name}");
        present(&key).then(|| gguf.boolean(&key, READER)).transpose()
    };
    let array = |name: &str, element| {
        let key = format!("tokenizer.ggml.{name}");
        present(&key).then(|| gguf.array(&key, element, READER)).transpose()
    };
    let text = |key: &str| present(key).then(|| gguf.text(key, READER)).transpose();
    Ok(VocabularyFields {
        model: gguf.text("tokenizer.ggml.model", READER)?,
        pre: text("tokenizer.ggml.pre")?,
        tokens: strings("tokenizer.ggml.tokens")?,
        scores: array("scores", ValueType::F32)?,
        token_types: array("token_type", ValueType::I32)?,
        merges: array("merges", ValueType::String)?,
        bos: id("bos")?,
        eos: id("eos")?,
        eot: id("eot")?,
        eom: id("eom")?,
        unknown: id("unknown")?,
        padding: id("padding")?,
        add_bos: flag("add_bos_token")?,
        add_eos: flag("add_eos_token")?,
        add_space_prefix: flag("add_space_prefix")?,
        chat_template: text("tokenizer.chat_template")?,
    })
}
