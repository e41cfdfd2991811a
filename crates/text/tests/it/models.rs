//! Vocabularies of the real models.

use std::path::PathBuf;

use heirloom_import::gguf::{self, Gguf, Value};
use heirloom_text::{NativeTokenizer, StringTable, TokenType, Vocabulary, VocabularyModel};

/// The vocabulary of the cached model `name`.
pub(crate) fn vocabulary(name: &str) -> Vocabulary {
    let path: PathBuf = heirloom_testkit::models::gguf(name);
    let file = Gguf::open(&path).unwrap();
    let fields = gguf::vocabulary(&file).unwrap();
    let strings =
        |array: gguf::Array<'_>| -> StringTable { array.iter().filter_map(Value::as_bytes).collect() };
    let mut vocabulary =
        Vocabulary::new(VocabularyModel::from_name(fields.model).unwrap(), strings(fields.tokens));
    vocabulary.pre = fields.pre.map(str::to_owned);
    vocabulary.scores = fields
        .scores
        .iter()
        .flat_map(gguf::Array::iter)
        .filter_map(Value::as_f64)
        .map(|s| s as f32)
        .collect();
    vocabulary.token_types = fields
        .token_types
        .iter()
        .flat_map(gguf::Array::iter)
        .filter_map(Value::as_i64)
        .map(|t| TokenType::from_number(t as i32))
        .collect();
    vocabulary.merges = fields.merges.map(strings).unwrap_or_default();
    vocabulary.bos = fields.bos;
    vocabulary.eos = fields.eos;
    vocabulary.eot = fields.eot;
    vocabulary.eom = fields.eom;
    vocabulary.unknown = fields.unknown;
    vocabulary.padding = fields.padding;
    vocabulary.add_bos = fields.add_bos;
    vocabulary.add_eos = fields.add_eos;
    vocabulary.add_space_prefix = fields.add_space_prefix;
    vocabulary.chat_template = fields.chat_template.map(str::to_owned);
    vocabulary
}

/// The tokenizer of the cached model `name`.
pub(crate) fn tokenizer(name: &str) -> NativeTokenizer {
    NativeTokenizer::new(vocabulary(name)).unwrap()
}
