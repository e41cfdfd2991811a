//! Text as it comes, one token after the other.

use std::ops::Deref;
use std::sync::Arc;

use crate::Tokenizer;

/// A tokenizer that somebody else keeps, or that is kept here.
enum Kept<'a> {
    Borrowed(&'a dyn Tokenizer),
    Shared(Arc<dyn Tokenizer>),
}

impl<'a> Deref for Kept<'a> {
    type Target = dyn Tokenizer + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Kept::Borrowed(tokenizer) => *tokenizer,
            Kept::Shared(tokenizer) => &**tokenizer,
        }
    }
}

/// Turns a stream of tokens into text and holds back what is not yet a whole character.
///
/// The pieces that [`StreamDecoder::push`] and [`StreamDecoder::finish`] return are, joined, the text of all tokens;
/// bytes that are no UTF-8 become U+FFFD. Control tokens are left out.
pub struct StreamDecoder<'a> {
    tokenizer: Kept<'a>,
    /// Bytes of a character whose end has not come.
    pending: Vec<u8>,
    /// For tokenizers whose text depends on the neighbours: the tokens since a place where the text is settled,
    /// and how many of them have been shown.
    window: Vec<u32>,
    shown: usize,
    text: String,
}

impl<'a> StreamDecoder<'a> {
    /// A decoder at the beginning of a stream.
    pub fn new(tokenizer: &'a dyn Tokenizer) -> Self {
        Self::with(Kept::Borrowed(tokenizer))
    }

    /// A decoder at the beginning of a stream that keeps its tokenizer.
    pub fn shared(tokenizer: Arc<dyn Tokenizer>) -> StreamDecoder<'static> {
        StreamDecoder::with(Kept::Shared(tokenizer))
    }

    fn with(tokenizer: Kept<'a>) -> Self {
        Self { tokenizer, pending: Vec::new(), window: Vec::new(), shown: 0, text: String::new() }
    }

    /// The text that is complete now that `token` has come: often its own text, sometimes none, sometimes more.
    /// An id that the vocabulary does not hold gives U+FFFD.
    pub fn push(&mut self, token: u32) -> &str {
        self.text.clear();
        if self.tokenizer.is_special(token) {
            return &self.text;
        }
        if self.tokenizer.is_context_free() {
            match self.tokenizer.token_bytes(token) {
                Some(bytes) => {
                    self.pending.extend_from_slice(&bytes);
                    self.take_characters();
                }
                None => self.text.push(char::REPLACEMENT_CHARACTER),
            }
        } else {
            self.push_in_context(token);
        }
        &self.text
    }

    /// What is still held back, at the end of the stream; the decoder is then at the beginning of a new one.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
        if self.shown < self.window.len() {
            let all = self.decode(0..self.window.len());
            let shown = self.decode(0..self.shown);
            self.text.push_str(all.strip_prefix(shown.as_str()).unwrap_or_default());
        }
        self.window.clear();
        self.shown = 0;
        &self.text
    }

    /// Moves the whole characters of `pending` to `text`.
    fn take_characters(&mut self) {
        let mut from = 0;
        while from < self.pending.len() {
            match std::str::from_utf8(&self.pending[from..]) {
                Ok(rest) => {
                    self.text.push_str(rest);
                    from = self.pending.len();
                }
                Err(error) => {
                    let valid = from + error.valid_up_to();
                    // The bytes up to there were just found to be UTF-8.
                    self.text.push_str(std::str::from_utf8(&self.pending[from..valid]).unwrap_or_default());
                    from = valid;
                    let Some(bad) = error.error_len() else { break };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    from += bad;
                }
            }
        }
        self.pending.drain(..from);
    }

    /// Shows what the text of the window has gained, unless it ends within a character.
    fn push_in_context(&mut self, token: u32) {
        self.window.push(token);
        let before = self.decode(0..self.shown);
        let now = self.decode(0..self.window.len());
        if now.len() > before.len() && !now.ends_with(char::REPLACEMENT_CHARACTER) {
            self.text.push_str(now.get(before.len()..).unwrap_or_default());
            self.window.drain(..self.shown);
            self.shown = self.window.len();
        }
    }

    fn decode(&self, range: std::ops::Range<usize>) -> String {
        let tokens = &self.window[range];
        self.tokenizer.decode(tokens, true).unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.to_string())
    }
}
