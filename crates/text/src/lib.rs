//! Text for language models: tokenizers, chat templates and streaming output.
//!
//! Two traits are all that a caller needs: [`Tokenizer`] (text to token ids and back) and [`ChatTemplate`]'s
//! [`RenderChat`] (messages to a prompt). A tokenizer comes from a [`Vocabulary`] ([`NativeTokenizer`], compact
//! tables of our own) or from a `tokenizer.json` ([`JsonTokenizer`], the `tokenizers` crate). [`StreamDecoder`]
//! turns tokens into text as they come and never splits a character.
//!
//! This crate knows no file format of models: whoever reads one fills a [`Vocabulary`].
#![forbid(unsafe_code)]

mod chat;
mod end_tokens;
mod error;
mod export;
mod json;
mod native;
mod stream;
mod vocabulary;

pub use chat::{ChatRequest, ChatTemplate, Message, RenderChat, TemplateTokens};
pub use end_tokens::END_OF_TURN_TEXTS;
pub use error::TextError;
pub use export::tokenizer_json;
pub use json::JsonTokenizer;
pub use native::{NativeTokenizer, pre_tokenizer_names};
pub use stream::StreamDecoder;
pub use vocabulary::{StringTable, TokenType, Vocabulary, VocabularyModel};

use std::borrow::Cow;

/// How text becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Adds the begin- and end-of-text tokens that the model asks for.
    pub add_special: bool,
    /// Recognizes control tokens (`<|im_start|>` …) in the text. Off for text that a stranger wrote: it then
    /// becomes ordinary characters. User-defined tokens are recognized either way.
    pub parse_special: bool,
}

impl Default for EncodeOptions {
    /// What a prompt needs: both on.
    fn default() -> Self {
        Self { add_special: true, parse_special: true }
    }
}

/// Text to token ids and back.
pub trait Tokenizer: Send + Sync {
    /// The token ids of `text`.
    ///
    /// # Errors
    /// A character that the vocabulary cannot express and that has no unknown token.
    fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TextError>;

    /// The text of `ids`. Bytes that are no UTF-8 become U+FFFD; control tokens are left out if `skip_special`.
    ///
    /// # Errors
    /// An id that the vocabulary does not hold.
    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError>;

    /// The bytes that token `id` stands for, wherever it appears. `None` when the id is unknown or when this
    /// tokenizer's text depends on the neighbours (see [`Tokenizer::is_context_free`]).
    fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>>;

    /// Whether the text of a sequence is the concatenation of [`Tokenizer::token_bytes`].
    fn is_context_free(&self) -> bool;

    /// Whether `id` is a control token, which is not part of the text.
    fn is_special(&self, id: u32) -> bool;

    /// The id of the token spelled `text`, as the vocabulary writes it.
    fn token_id(&self, text: &str) -> Option<u32>;

    /// Number of token ids.
    fn size(&self) -> usize;

    /// The token that begins a text, if the model has one.
    fn begin_of_text(&self) -> Option<u32>;

    /// The tokens at which generation stops, sorted.
    fn end_tokens(&self) -> &[u32];

    /// Whether [`EncodeOptions::add_special`] puts the begin-of-text token in front.
    fn adds_begin_of_text(&self) -> bool;
}

/// The tokens of a prompt that a chat template rendered: control tokens are recognized, and the begin-of-text
/// token is added only where the template has not written it.
///
/// # Errors
/// As [`Tokenizer::encode`].
pub fn encode_rendered(tokenizer: &dyn Tokenizer, prompt: &str) -> Result<Vec<u32>, TextError> {
    let mut ids = tokenizer.encode(prompt, EncodeOptions { add_special: false, parse_special: true })?;
    if let Some(begin) = tokenizer.begin_of_text()
        && tokenizer.adds_begin_of_text()
        && ids.first() != Some(&begin)
    {
        ids.insert(0, begin);
    }
    Ok(ids)
}
