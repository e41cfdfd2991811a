//! The tokenizer of a `tokenizer.json`, by the `tokenizers` crate.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use crate::native::append_spelling;
use crate::{EncodeOptions, TextError, Tokenizer};

/// A tokenizer made from a `tokenizer.json`.
///
/// That file does not say which tokens begin and end a text; whoever knows (`tokenizer_config.json`,
/// `generation_config.json`, a model's metadata) says so with [`JsonTokenizer::with_begin`] and
/// [`JsonTokenizer::with_ends`].
pub struct JsonTokenizer {
    /// Locked for writing only while a text is encoded without special tokens: that is a switch of the tokenizer.
    tokenizer: RwLock<tokenizers::Tokenizer>,
    bytes: TokenBytes,
    special: Vec<u32>,
    size: usize,
    begin: Option<u32>,
    adds_begin: bool,
    end_tokens: Vec<u32>,
}

/// How a token's spelling becomes bytes, where that does not depend on its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenBytes {
    /// Byte-level spelling.
    ByteLevel,
    /// `▁` for the space, `<0x0A>` for bytes.
    ByteFallback,
    /// It does depend.
    InContext,
}

impl JsonTokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// Not such a file.
    pub fn from_json(json: &[u8]) -> Result<Self, TextError> {
        let tokenizer = tokenizers::Tokenizer::from_bytes(json).map_err(json_error)?;
        let added = tokenizer.get_added_tokens_decoder();
        let mut special: Vec<u32> = added.iter().filter(|(_, t)| t.special).map(|(id, _)| *id).collect();
        special.sort_unstable();
        let highest = added.keys().max().map_or(0, |id| *id as usize + 1);
        Ok(Self {
            bytes: token_bytes(&tokenizer)?,
            size: tokenizer.get_vocab_size(true).max(highest),
            tokenizer: RwLock::new(tokenizer),
            special,
            begin: None,
            adds_begin: false,
            end_tokens: Vec::new(),
        })
    }

    /// States that `text` is the token that begins a text.
    ///
    /// # Errors
    /// No such token.
    pub fn with_begin(mut self, text: &str) -> Result<Self, TextError> {
        let id = self.known(text)?;
        self.begin = Some(id);
        self.adds_begin = self.encode("", EncodeOptions::default())?.first() == Some(&id);
        Ok(self)
    }

    /// States that generation stops at the tokens `texts`.
    ///
    /// # Errors
    /// No such token.
    pub fn with_ends(mut self, texts: &[&str]) -> Result<Self, TextError> {
        for text in texts {
            let id = self.known(text)?;
            self.end_tokens.push(id);
        }
        self.end_tokens.sort_unstable();
        self.end_tokens.dedup();
        Ok(self)
    }

    fn known(&self, text: &str) -> Result<u32, TextError> {
        let message = || format!("`{text}` is not one of its tokens");
        self.token_id(text).ok_or_else(|| TextError::Json { message: message() })
    }

    fn read<T>(&self, f: impl FnOnce(&tokenizers::Tokenizer) -> T) -> T {
        f(&self.tokenizer.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tokenizer for JsonTokenizer {
    fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TextError> {
        let encode = |tokenizer: &tokenizers::Tokenizer| {
            tokenizer.encode_fast(text, options.add_special).map(|e| Vec::from(e.get_ids()))
        };
        let ids = if options.parse_special {
            self.read(encode)
        } else {
            let mut tokenizer = self.tokenizer.write().unwrap_or_else(PoisonError::into_inner);
            tokenizer.set_encode_special_tokens(true);
            let ids = encode(&tokenizer);
            tokenizer.set_encode_special_tokens(false);
            ids
        };
        ids.map_err(json_error)
    }

    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError> {
        if let Some(&id) = ids.iter().find(|id| **id as usize >= self.size) {
            return Err(TextError::UnknownId { id, what: "to decode", size: self.size });
        }
        self.read(|t| t.decode(ids, skip_special)).map_err(json_error)
    }

    fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let spelling = self.read(|t| t.id_to_token(id))?;
        let added = self.read(|t| t.get_added_vocabulary().get_added_tokens_decoder().contains_key(&id));
        let mut bytes = Vec::new();
        match self.bytes {
            TokenBytes::ByteLevel if !added => append_spelling(&spelling, &mut bytes),
            TokenBytes::ByteFallback if !added => match crate::native::byte_token(&spelling) {
                Some(byte) => bytes.push(byte),
                None => bytes.extend(spelling.replace('▁', " ").bytes()),
            },
            TokenBytes::InContext => return None,
            _ => bytes.extend(spelling.bytes()),
        }
        Some(Cow::Owned(bytes))
    }

    fn is_context_free(&self) -> bool {
        self.bytes != TokenBytes::InContext
    }

    fn is_special(&self, id: u32) -> bool {
        self.special.binary_search(&id).is_ok()
    }

    fn token_id(&self, text: &str) -> Option<u32> {
        self.read(|t| t.token_to_id(text))
    }

    fn size(&self) -> usize {
        self.size
    }

    fn begin_of_text(&self) -> Option<u32> {
        self.begin
    }

    fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    fn adds_begin_of_text(&self) -> bool {
        self.adds_begin
    }
}

/// Reads off the decoder whether tokens can be spelled one by one.
fn token_bytes(tokenizer: &tokenizers::Tokenizer) -> Result<TokenBytes, TextError> {
    let decoder = serde_json::to_value(tokenizer.get_decoder())
        .map_err(|e| TextError::Json { message: e.to_string() })?;
    let kind = |v: &serde_json::Value| v["type"].as_str().unwrap_or_default().to_owned();
    if kind(&decoder) == "ByteLevel" {
        return Ok(TokenBytes::ByteLevel);
    }
    let steps: Vec<String> = decoder["decoders"].as_array().into_iter().flatten().map(kind).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    // A `Strip` at the end takes the space before the first word, which a continued text does not have.
    Ok(match steps.as_slice() {
        ["ByteLevel"] => TokenBytes::ByteLevel,
        ["Replace", "ByteFallback", "Fuse"] | ["Replace", "ByteFallback", "Fuse", "Strip"] => {
            TokenBytes::ByteFallback
        }
        _ => TokenBytes::InContext,
    })
}

fn json_error(error: tokenizers::Error) -> TextError {
    TextError::Json { message: error.to_string() }
}
