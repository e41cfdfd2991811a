//! What can be wrong with a vocabulary, a text or a template.

/// Everything this crate reports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The vocabulary's algorithm is not one of ours.
    #[error(
        "tokenizer model `{model}` is not supported; supported are `gpt2` (byte-level BPE) and `llama` (SentencePiece)"
    )]
    UnknownModel {
        /// The name in the file (`tokenizer.ggml.model` in GGUF).
        model: String,
    },
    /// The vocabulary's way to split text into words is not one of ours.
    #[error("pre-tokenizer `{name}` is not supported; supported are {}", known.join(", "))]
    UnknownPreTokenizer {
        /// The name in the file (`tokenizer.ggml.pre` in GGUF).
        name: String,
        /// The names in the table.
        known: Vec<&'static str>,
    },
    /// A vocabulary without tokens.
    #[error("the vocabulary holds no tokens")]
    EmptyVocabulary,
    /// A vocabulary with more tokens or bytes than 32-bit ids and offsets can number.
    #[error("the vocabulary is too large: {count} {what}, at most {limit}")]
    VocabularyTooLarge {
        /// `tokens`, `bytes` or `merges`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A list that must have one entry per token has another length.
    #[error("the vocabulary's `{list}` has {actual} entries for {expected} tokens")]
    LengthMismatch {
        /// Which list.
        list: &'static str,
        /// The number of tokens.
        expected: usize,
        /// Its length.
        actual: usize,
    },
    /// A list that the vocabulary's algorithm needs is missing.
    #[error("a `{model}` vocabulary needs `{list}`")]
    MissingList {
        /// The algorithm.
        model: &'static str,
        /// The list.
        list: &'static str,
    },
    /// A merge rule that is not `left right`, or whose parts or result are no tokens.
    #[error("merge {index} `{merge}`: {reason}")]
    BadMerge {
        /// Position in the list of merges.
        index: usize,
        /// The rule as the file writes it.
        merge: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A token id beyond the vocabulary.
    #[error("token id {id} ({what}) is not in the vocabulary of {size} tokens")]
    UnknownId {
        /// The id.
        id: u32,
        /// Where it came from.
        what: &'static str,
        /// The vocabulary's size.
        size: usize,
    },
    /// A text too long for 32-bit positions.
    #[error("the text has {length} bytes; at most {limit} can be encoded at once")]
    TextTooLong {
        /// Its length in bytes.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A byte that no token stands for, in a vocabulary without an unknown token.
    #[error("the vocabulary has no token for byte 0x{byte:02X} and no unknown token")]
    NoTokenForByte {
        /// The byte.
        byte: u8,
    },
    /// A `tokenizer.json` that does not parse, or text that it could not process.
    #[error("tokenizer.json: {message}")]
    Json {
        /// What the `tokenizers` crate says.
        message: String,
    },
    /// A chat template that does not parse, or that failed on these messages.
    #[error("chat template{}: {message}", line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Template {
        /// What went wrong.
        message: String,
        /// Line in the template, from 1.
        line: Option<usize>,
    },
    /// The template itself refused the messages (`raise_exception`).
    #[error("the chat template refuses these messages: {message}")]
    TemplateRefused {
        /// The template's own words.
        message: String,
    },
    /// Messages or tools that are no JSON of the expected form.
    #[error("{what} is not valid JSON: {message}")]
    BadJson {
        /// `messages`, `tools` or `variables`.
        what: &'static str,
        /// What the parser says, with line and column.
        message: String,
    },
}
