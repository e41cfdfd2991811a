//! A model's tokenizer and chat template, from the GGUF file that its metadata names or from the metadata itself.

use std::path::{Component, Path};
use std::sync::Arc;

use heirloom_graph::Model;
use heirloom_import::gguf::{Array, Gguf, Value, VocabularyFields, vocabulary};
use heirloom_text::{
    ChatTemplate, JsonTokenizer, NativeTokenizer, StringTable, TemplateTokens, TokenType, Tokenizer,
};
use heirloom_text::{Vocabulary, VocabularyModel};

use super::LlmError;

/// Metadata: the GGUF file that holds the text, relative to the model's folder.
pub(super) const FILE: &str = "heirloom.text";
/// Metadata: the tokenizer as `tokenizer.json`.
pub(super) const TOKENIZER: &str = "heirloom.tokenizer";
/// Metadata: the chat template.
pub(super) const TEMPLATE: &str = "heirloom.chat_template";
/// Metadata: the spelling of the token that begins a text.
pub(super) const BOS: &str = "heirloom.bos_token";
/// Metadata: the spelling of the token that ends a text.
pub(super) const EOS: &str = "heirloom.eos_token";
/// Metadata: the spellings of all tokens at which generation stops, one on each line; else `heirloom.eos_token` alone.
pub(super) const END_TOKENS: &str = "heirloom.end_tokens";

/// Text of one model.
pub(super) struct Text {
    pub(super) tokenizer: Arc<dyn Tokenizer>,
    pub(super) template: Option<ChatTemplate>,
}

impl Text {
    pub(super) fn of(model: &Model, path: &Path) -> Result<Text, LlmError> {
        if let Some(location) = model.metadata_value(FILE) {
            return Text::of_gguf(path, location);
        }
        let json = model.metadata_value(TOKENIZER).ok_or_else(|| LlmError::NoText { path: path.into() })?;
        let mut tokenizer = JsonTokenizer::from_json(json.as_bytes())?;
        if let Some(bos) = model.metadata_value(BOS) {
            tokenizer = tokenizer.with_begin(bos)?;
        }
        if let Some(ends) = model.metadata_value(END_TOKENS).or_else(|| model.metadata_value(EOS)) {
            tokenizer = tokenizer.with_ends(&ends.lines().collect::<Vec<_>>())?;
        }
        let token = |key: &str| model.metadata_value(key).map(str::to_owned);
        let tokens = TemplateTokens { bos: token(BOS), eos: token(EOS), ..TemplateTokens::default() };
        let template = model.metadata_value(TEMPLATE);
        let template = template.map(|t| ChatTemplate::new(t, tokens)).transpose()?;
        Ok(Text { tokenizer: Arc::new(tokenizer), template })
    }

    fn of_gguf(path: &Path, location: &str) -> Result<Text, LlmError> {
        let inside = !location.is_empty()
            && Path::new(location)
                .components()
                .all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(LlmError::TextLocation { path: path.into(), location: location.into() });
        }
        let file = path.parent().unwrap_or(Path::new("")).join(location);
        let wrong = |source| LlmError::TextFile { path: path.into(), source };
        let gguf = Gguf::open(&file).map_err(wrong)?;
        let vocabulary = owned(vocabulary(&gguf).map_err(wrong)?)?;
        let tokens = template_tokens(&vocabulary);
        let template =
            vocabulary.chat_template.as_deref().map(|t| ChatTemplate::new(t, tokens)).transpose()?;
        Ok(Text { tokenizer: Arc::new(NativeTokenizer::new(vocabulary)?), template })
    }
}

fn spelling(vocabulary: &Vocabulary, id: u32) -> Option<String> {
    Some(String::from_utf8_lossy(vocabulary.tokens.get(id as usize)?).into_owned())
}

/// The spellings that chat templates may ask for.
pub(super) fn template_tokens(vocabulary: &Vocabulary) -> TemplateTokens {
    let spelled = |id: Option<u32>| spelling(vocabulary, id?);
    TemplateTokens {
        bos: spelled(vocabulary.bos),
        eos: spelled(vocabulary.eos),
        unknown: spelled(vocabulary.unknown),
        padding: spelled(vocabulary.padding),
    }
}

/// The value of [`END_TOKENS`].
pub(super) fn end_tokens(vocabulary: Vocabulary) -> Result<String, LlmError> {
    let tokenizer = NativeTokenizer::new(vocabulary)?;
    let texts = tokenizer.end_tokens().iter().filter_map(|&id| tokenizer.token_bytes(id));
    let texts: Vec<String> = texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
    Ok(texts.join("\n"))
}

/// The fields of the file as the vocabulary that the text crate takes.
pub(super) fn owned(fields: VocabularyFields<'_>) -> Result<Vocabulary, LlmError> {
    let table = |array: &Array<'_>| {
        let mut table = StringTable::default();
        array.iter().for_each(|s| table.push(if let Value::String(s) = s { s } else { &[] }));
        table
    };
    let mut vocabulary = Vocabulary::new(VocabularyModel::from_name(fields.model)?, table(&fields.tokens));
    vocabulary.pre = fields.pre.map(str::to_owned);
    vocabulary.scores = fields.scores.iter().flat_map(|a| a.iter()).map(float).collect();
    vocabulary.token_types = fields.token_types.iter().flat_map(|a| a.iter()).map(token_type).collect();
    vocabulary.merges = fields.merges.as_ref().map(table).unwrap_or_default();
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
    Ok(vocabulary)
}

/// The reader has checked the arrays' element types; anything else would be NaN, which no score is.
fn float(value: Value<'_>) -> f32 {
    match value {
        Value::Float(x) => x as f32,
        _ => f32::NAN,
    }
}

fn token_type(value: Value<'_>) -> TokenType {
    let number = match value {
        Value::Unsigned(n) => i32::try_from(n),
        Value::Signed(n) => i32::try_from(n),
        _ => Ok(-1),
    };
    TokenType::from_number(number.unwrap_or(-1))
}
