//! The tokenizer made from a [`Vocabulary`]: special tokens, words, merges, bytes. It gives the tokens that
//! llama.cpp gives for the same vocabulary.

mod byte_level;
mod hash;
mod letters;
mod lookup;
mod merge;
mod special;
mod split;

use std::borrow::Cow;
use std::ops::Range;

use self::lookup::{MergeTable, TokenTable};
use self::merge::Merger;
use self::special::{Fragment, SpecialTokens};
pub(crate) use self::split::{Splitter, find as find_splitter};
use crate::end_tokens::end_tokens;
use crate::{EncodeOptions, StringTable, TextError, TokenType, Tokenizer, Vocabulary, VocabularyModel};

/// SentencePiece's visible space.
const VISIBLE_SPACE: &str = "▁";

/// The names of all known pre-tokenizers of byte-pair vocabularies.
pub fn pre_tokenizer_names() -> Vec<&'static str> {
    split::SPLITTERS.iter().flat_map(|s| s.names).copied().collect()
}

/// A tokenizer over compact tables: for a vocabulary of 150,000 tokens and as many merges about 10 MB.
pub struct NativeTokenizer {
    tokens: TokenTable,
    types: Vec<TokenType>,
    special: SpecialTokens,
    algorithm: Algorithm,
    bytes: Box<[Option<u32>; 256]>,
    unknown: Option<u32>,
    begin: Option<u32>,
    end: Option<u32>,
    add_begin: bool,
    add_end: bool,
    end_tokens: Vec<u32>,
}

enum Algorithm {
    BytePair { splitter: &'static Splitter, merges: MergeTable },
    SentencePiece { scores: Vec<f32>, space_prefix: bool },
}

impl NativeTokenizer {
    /// Builds the tables; `vocabulary`'s own strings are dropped.
    ///
    /// # Errors
    /// An unknown pre-tokenizer, lists that do not fit together, a merge whose parts are no tokens.
    pub fn new(mut vocabulary: Vocabulary) -> Result<Self, TextError> {
        vocabulary.check()?;
        let texts = token_bytes(&vocabulary);
        let tokens = TokenTable::new(texts, |id, text| merge_rank(&vocabulary, id, text));
        let special = special_tokens(&vocabulary, &tokens);
        let bytes = byte_tokens(&vocabulary, &tokens);
        let (algorithm, default_bos) = match vocabulary.model {
            VocabularyModel::BytePair => {
                let name = vocabulary.pre.as_deref().unwrap_or_default();
                let splitter = split::find(name).ok_or_else(|| TextError::UnknownPreTokenizer {
                    name: name.to_owned(),
                    known: pre_tokenizer_names(),
                })?;
                if vocabulary.merges.is_empty() {
                    return Err(TextError::MissingList { model: "gpt2", list: "merges" });
                }
                let merges = MergeTable::new(&vocabulary.merges, &tokens, append_spelling)?;
                (Algorithm::BytePair { splitter, merges }, splitter.add_bos)
            }
            VocabularyModel::SentencePiece => {
                if vocabulary.scores.is_empty() {
                    return Err(TextError::MissingList { model: "llama", list: "scores" });
                }
                let space_prefix = vocabulary.add_space_prefix.unwrap_or(true);
                let scores = std::mem::take(&mut vocabulary.scores);
                (Algorithm::SentencePiece { scores, space_prefix }, true)
            }
        };
        let end_tokens = end_tokens(&vocabulary, |text| tokens.find(text.as_bytes()));
        Ok(Self {
            tokens,
            special,
            algorithm,
            bytes,
            unknown: vocabulary.unknown,
            begin: vocabulary.bos,
            end: vocabulary.eos,
            add_begin: vocabulary.add_bos.unwrap_or(default_bos) && vocabulary.bos.is_some(),
            add_end: vocabulary.add_eos.unwrap_or(false) && vocabulary.eos.is_some(),
            end_tokens,
            types: vocabulary.token_types,
        })
    }

    fn token_type(&self, id: u32) -> TokenType {
        self.types.get(id as usize).copied().unwrap_or(TokenType::Normal)
    }

    /// Appends the tokens of a text without special tokens in it.
    fn encode_plain(
        &self,
        text: &str,
        after_special: bool,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        match &self.algorithm {
            Algorithm::BytePair { splitter, merges } => splitter
                .split(text, |word| self.encode_word(word, splitter.ignore_merges, merges, merger, ids)),
            Algorithm::SentencePiece { scores, space_prefix } => {
                let text = text.replace(VISIBLE_SPACE, " ");
                let text =
                    if *space_prefix && after_special { Cow::from(format!(" {text}")) } else { text.into() };
                self.encode_piece(&text, scores, merger, ids)
            }
        }
    }

    fn encode_word(
        &self,
        word: &str,
        ignore_merges: bool,
        merges: &MergeTable,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        if ignore_merges && let Some(id) = self.tokens.find(word.as_bytes()) {
            ids.push(id);
            return Ok(());
        }
        merger.clear();
        for byte in word.bytes() {
            merger.push(1, self.bytes[usize::from(byte)]);
        }
        for symbol in merger.run(|left, right| merges.get(left.id?, right.id?)) {
            self.push_symbol(word.as_bytes(), symbol.start..symbol.end, symbol.id, ids)?;
        }
        Ok(())
    }

    fn encode_piece(
        &self,
        text: &str,
        scores: &[f32],
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        let bytes = text.as_bytes();
        merger.clear();
        for (at, character) in text.char_indices() {
            let length = character.len_utf8();
            merger.push(length as u32, self.tokens.find(&bytes[at..at + length]));
        }
        let symbols = merger.run(|left, right| {
            let id = self.tokens.find(&bytes[left.start as usize..right.end as usize])?;
            Some((rank_of_score(*scores.get(id as usize)?), id))
        });
        for symbol in symbols {
            self.push_symbol(bytes, symbol.start..symbol.end, symbol.id, ids)?;
        }
        Ok(())
    }

    /// Appends the token of a symbol, or those of its bytes where it has none.
    fn push_symbol(
        &self,
        text: &[u8],
        range: Range<u32>,
        id: Option<u32>,
        ids: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        if let Some(id) = id {
            ids.push(id);
            return Ok(());
        }
        for byte in &text[range.start as usize..range.end as usize] {
            let id = self.bytes[usize::from(*byte)].or(self.unknown);
            ids.push(id.ok_or(TextError::NoTokenForByte { byte: *byte })?);
        }
        Ok(())
    }
}

impl Tokenizer for NativeTokenizer {
    fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TextError> {
        let limit = i32::MAX as usize;
        if text.len() > limit {
            return Err(TextError::TextTooLong { length: text.len(), limit });
        }
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        if options.add_special && self.add_begin {
            ids.extend(self.begin);
        }
        let mut merger = Merger::default();
        let mut after_special = true;
        for fragment in self.special.partition(text, options.parse_special) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(ref range) => {
                    self.encode_plain(&text[range.clone()], after_special, &mut merger, &mut ids)?
                }
            }
            after_special = matches!(fragment, Fragment::Token(_));
        }
        if options.add_special && self.add_end {
            ids.extend(self.end);
        }
        Ok(ids)
    }

    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TextError> {
        let mut bytes = Vec::new();
        for &id in ids {
            let size = self.size();
            let text = self.tokens.text(id).ok_or(TextError::UnknownId { id, what: "to decode", size })?;
            if !(skip_special && self.is_special(id)) {
                bytes.extend_from_slice(text);
            }
        }
        let mut text =
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        if matches!(self.algorithm, Algorithm::SentencePiece { space_prefix: true, .. })
            && text.starts_with(' ')
        {
            text.remove(0);
        }
        Ok(text)
    }

    fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        self.tokens.text(id).map(Cow::Borrowed)
    }

    fn is_context_free(&self) -> bool {
        true
    }

    fn is_special(&self, id: u32) -> bool {
        matches!(self.token_type(id), TokenType::Control | TokenType::Unknown)
    }

    fn token_id(&self, text: &str) -> Option<u32> {
        let mut bytes = Vec::new();
        match self.algorithm {
            Algorithm::BytePair { .. } => append_spelling(text, &mut bytes),
            Algorithm::SentencePiece { .. } => bytes.extend(text.replace(VISIBLE_SPACE, " ").bytes()),
        }
        self.tokens.find(text.as_bytes()).or_else(|| self.tokens.find(&bytes))
    }

    fn size(&self) -> usize {
        self.tokens.len()
    }

    fn begin_of_text(&self) -> Option<u32> {
        self.begin
    }

    fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    fn adds_begin_of_text(&self) -> bool {
        self.add_begin
    }
}

/// Which of several tokens with the same `text` merging finds: normal ones before the others. A SentencePiece token
/// that is spelled with a plain space, not with the visible one, is matched before merging or not at all.
fn merge_rank(vocabulary: &Vocabulary, id: u32, text: &[u8]) -> Option<u8> {
    let normal = vocabulary.token_type(id as usize) == TokenType::Normal;
    let sentence_piece = vocabulary.model == VocabularyModel::SentencePiece;
    let plain_space = || {
        let spelling = vocabulary.tokens.get(id as usize).unwrap_or_default();
        text.contains(&b' ') && spelling.contains(&b' ')
    };
    if sentence_piece && !normal && plain_space() { None } else { Some(normal.into()) }
}

/// Appends what a token of a byte-level vocabulary stands for; a spelling that is not byte-level stands for itself.
pub(crate) fn append_spelling(spelling: &str, out: &mut Vec<u8>) {
    if !byte_level::append_bytes(spelling, out) {
        out.extend_from_slice(spelling.as_bytes());
    }
}

/// The bytes that each token stands for in a text.
fn token_bytes(vocabulary: &Vocabulary) -> StringTable {
    let mut texts = StringTable::with_capacity(vocabulary.tokens.len(), 0);
    let mut buffer = Vec::new();
    for (id, spelling) in vocabulary.tokens.iter().enumerate() {
        buffer.clear();
        let literal = matches!(vocabulary.token_type(id), TokenType::Control | TokenType::UserDefined);
        match (std::str::from_utf8(spelling), vocabulary.model) {
            (Ok(spelling), VocabularyModel::BytePair) if !literal => append_spelling(spelling, &mut buffer),
            (Ok(spelling), VocabularyModel::SentencePiece) => {
                match byte_token(spelling).filter(|_| vocabulary.token_type(id) == TokenType::Byte) {
                    Some(byte) => buffer.push(byte),
                    None => buffer.extend(spelling.replace(VISIBLE_SPACE, " ").bytes()),
                }
            }
            _ => buffer.extend_from_slice(spelling),
        }
        texts.push(&buffer);
    }
    texts
}

/// The byte that `<0x0A>` stands for.
pub(crate) fn byte_token(spelling: &str) -> Option<u8> {
    let digits = spelling.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// For each byte the token that stands for it alone.
fn byte_tokens(vocabulary: &Vocabulary, tokens: &TokenTable) -> Box<[Option<u32>; 256]> {
    let mut bytes = Box::new([None; 256]);
    match vocabulary.model {
        VocabularyModel::BytePair => {
            for byte in 0..=u8::MAX {
                bytes[usize::from(byte)] = tokens.find(&[byte]);
            }
        }
        VocabularyModel::SentencePiece => {
            for id in 0..tokens.len() as u32 {
                if vocabulary.token_type(id as usize) == TokenType::Byte
                    && let Some([byte]) = tokens.text(id)
                {
                    bytes[usize::from(*byte)] = Some(id);
                }
            }
        }
    }
    bytes
}

fn special_tokens(vocabulary: &Vocabulary, tokens: &TokenTable) -> SpecialTokens {
    let ids = 0..tokens.len() as u32;
    SpecialTokens::new(ids.filter_map(|id| {
        let always = match vocabulary.token_type(id as usize) {
            TokenType::UserDefined => true,
            TokenType::Control | TokenType::Unknown => false,
            TokenType::Normal | TokenType::Unused | TokenType::Byte => return None,
        };
        let spelling = vocabulary.tokens.get(id as usize)?;
        Some((spelling.iter().copied().collect(), id, always))
    }))
}

/// A rank that is lower for a higher score, whatever the bits.
fn rank_of_score(score: f32) -> u32 {
    let bits = score.to_bits();
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    !ascending
}
