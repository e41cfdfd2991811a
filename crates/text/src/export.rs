//! A vocabulary as `tokenizer.json`, for models that carry their text with them.
use crate::*;
/// x
pub fn tokenizer_json(_v: &Vocabulary) -> Result<String, TextError> {
    Err(TextError::EmptyVocabulary)
}
