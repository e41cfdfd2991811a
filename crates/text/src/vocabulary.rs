//! The plain description of a vocabulary, filled by whoever read it from a file.

use crate::TextError;

/// Many strings in one allocation: a token list of 150,000 entries costs its bytes and four more per entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringTable {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    overflow: bool,
}

impl StringTable {
    /// An empty table with room for `count` strings of `bytes` bytes together.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count), overflow: false }
    }

    /// Appends one string; it need not be UTF-8.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        match u32::try_from(self.bytes.len()) {
            Ok(end) if !self.overflow => self.ends.push(end),
            _ => self.overflow = true,
        }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `index`, or `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        Some(&self.bytes[start..end])
    }

    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// Fails when more than 4 GiB were pushed.
    pub(crate) fn check(&self) -> Result<(), TextError> {
        if self.overflow {
            let limit = u32::MAX as usize;
            return Err(TextError::VocabularyTooLarge { what: "bytes", count: self.bytes.len(), limit });
        }
        Ok(())
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for StringTable {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let strings = strings.into_iter();
        let mut table = Self::with_capacity(strings.size_hint().0.min(1 << 20), 0);
        for string in strings {
            table.push(string.as_ref());
        }
        table
    }
}

/// What a token is for (`tokenizer.ggml.token_type` in GGUF).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenType {
    /// A piece of text.
    Normal = 1,
    /// Stands for what the vocabulary cannot express.
    Unknown = 2,
    /// Steers the model; not part of the text.
    Control = 3,
    /// A piece of text that is matched before the algorithm runs.
    UserDefined = 4,
    /// A placeholder without meaning.
    Unused = 5,
    /// One byte, written `<0x0A>`.
    Byte = 6,
}

impl TokenType {
    /// The type with GGUF's number; numbers that GGUF does not define mean [`TokenType::Normal`].
    pub fn from_number(number: i32) -> Self {
        match number {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// The algorithm that a vocabulary is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VocabularyModel {
    /// Byte-level byte-pair encoding with an ordered list of merges (`gpt2` in GGUF).
    BytePair,
    /// SentencePiece's BPE by scores, with `▁` for the space and byte tokens (`llama` in GGUF).
    SentencePiece,
}

impl VocabularyModel {
    /// The model with GGUF's name.
    ///
    /// # Errors
    /// [`TextError::UnknownModel`] for any other name.
    pub fn from_name(name: &str) -> Result<Self, TextError> {
        match name {
            "gpt2" => Ok(Self::BytePair),
            "llama" => Ok(Self::SentencePiece),
            _ => Err(TextError::UnknownModel { model: name.to_owned() }),
        }
    }
}

/// A vocabulary as a file describes it. Optional entries that the file lacks stay `None`; the algorithm's own
/// default then holds.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    /// The algorithm.
    pub model: VocabularyModel,
    /// How a byte-pair vocabulary splits text into words (`tokenizer.ggml.pre`); unused by SentencePiece.
    pub pre: Option<String>,
    /// The tokens, in the spelling of the file, by id.
    pub tokens: StringTable,
    /// One score per token; SentencePiece needs it.
    pub scores: Vec<f32>,
    /// One type per token; empty means all normal.
    pub token_types: Vec<TokenType>,
    /// `left right`, best first; byte-pair encoding needs it.
    pub merges: StringTable,
    /// Begin of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// End of turn.
    pub eot: Option<u32>,
    /// End of message.
    pub eom: Option<u32>,
    /// Stands for what the vocabulary cannot express.
    pub unknown: Option<u32>,
    /// Fills unequal lengths of a batch.
    pub padding: Option<u32>,
    /// Whether a text begins with `bos`. Default: SentencePiece yes, byte-pair as its pre-tokenizer's models do.
    pub add_bos: Option<bool>,
    /// Whether a text ends with `eos`. Default: no.
    pub add_eos: Option<bool>,
    /// Whether SentencePiece puts a space before a text. Default: yes.
    pub add_space_prefix: Option<bool>,
    /// The Jinja source that turns messages into a prompt.
    pub chat_template: Option<String>,
}

impl Vocabulary {
    /// A vocabulary with `tokens` and nothing else.
    pub fn new(model: VocabularyModel, tokens: StringTable) -> Self {
        Self {
            model,
            pre: None,
            tokens,
            scores: Vec::new(),
            token_types: Vec::new(),
            merges: StringTable::default(),
            bos: None,
            eos: None,
            eot: None,
            eom: None,
            unknown: None,
            padding: None,
            add_bos: None,
            add_eos: None,
            add_space_prefix: None,
            chat_template: None,
        }
    }

    pub(crate) fn token_type(&self, id: usize) -> TokenType {
        self.token_types.get(id).copied().unwrap_or(TokenType::Normal)
    }

    /// Checks lengths and ids before anything is built from them.
    pub(crate) fn check(&self) -> Result<(), TextError> {
        self.tokens.check()?;
        self.merges.check()?;
        let size = self.tokens.len();
        if size == 0 {
            return Err(TextError::EmptyVocabulary);
        }
        let limit = i32::MAX as usize;
        for (what, count) in [("tokens", size), ("merges", self.merges.len())] {
            if count > limit {
                return Err(TextError::VocabularyTooLarge { what, count, limit });
            }
        }
        for (list, actual) in [("scores", self.scores.len()), ("token_types", self.token_types.len())] {
            if actual != 0 && actual != size {
                return Err(TextError::LengthMismatch { list, expected: size, actual });
            }
        }
        let ids = [
            (self.bos, "bos"),
            (self.eos, "eos"),
            (self.eot, "eot"),
            (self.eom, "eom"),
            (self.unknown, "unknown"),
            (self.padding, "padding"),
        ];
        for (id, what) in ids {
            if let Some(id) = id.filter(|id| *id as usize >= size) {
                return Err(TextError::UnknownId { id, what, size });
            }
        }
        Ok(())
    }
}
