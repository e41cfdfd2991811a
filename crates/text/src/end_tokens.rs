//! Which tokens end a generated text.

use crate::{TokenType, Vocabulary};

/// Spellings of tokens that end a turn or a text in the models people ship. Files often name only one of them as
/// their end of text while the model emits another.
pub const END_OF_TURN_TEXTS: &[&str] = &[
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endofturn|>",
    "<EOT>",
    "<|return|>",
    "<|call|>",
    "<｜end▁of▁sentence｜>",
];

/// The ids that `vocabulary` declares as ends, and its control tokens with a well-known spelling; sorted.
pub(crate) fn end_tokens(vocabulary: &Vocabulary, token_id: impl Fn(&str) -> Option<u32>) -> Vec<u32> {
    let declared = [vocabulary.eos, vocabulary.eot, vocabulary.eom];
    let known = END_OF_TURN_TEXTS.iter().filter_map(|text| {
        token_id(text).filter(|id| vocabulary.token_type(*id as usize) == TokenType::Control)
    });
    let mut ids: Vec<u32> = declared.into_iter().flatten().chain(known).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
