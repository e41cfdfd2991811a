//! A vocabulary as `tokenizer.json`, for models that carry their text with them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::native::{Splitter, find_splitter, pre_tokenizer_names};
use crate::{TextError, TokenType, Vocabulary, VocabularyModel};

/// `vocabulary` in the format of the `tokenizers` library (`tokenizer.json`, version 1.0).
///
/// # Errors
/// A vocabulary that [`NativeTokenizer::new`](crate::NativeTokenizer::new) refuses as well, or a token that is no
/// UTF-8, which JSON cannot hold.
pub fn tokenizer_json(vocabulary: &Vocabulary) -> Result<String, TextError> {
    vocabulary.check()?;
    let tokens = texts(vocabulary)?;
    let ids: HashMap<&str, usize> = tokens.iter().enumerate().map(|(id, token)| (*token, id)).collect();
    let parts = match vocabulary.model {
        VocabularyModel::BytePair => byte_pair(vocabulary)?,
        VocabularyModel::SentencePiece => sentence_piece(vocabulary, &tokens, &ids)?,
    };
    let added: Vec<Value> = tokens
        .iter()
        .enumerate()
        .filter_map(|(id, token)| {
            let kind = vocabulary.token_type(id);
            let special = matches!(kind, TokenType::Control | TokenType::Unknown);
            (special || kind == TokenType::UserDefined).then(|| {
                json!({
                    "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": special,
                })
            })
        })
        .collect();
    let file = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": parts.normalizer,
        "pre_tokenizer": parts.pre_tokenizer,
        "post_processor": post_processor(vocabulary, &tokens, parts.adds_bos),
        "decoder": parts.decoder,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": vocabulary.unknown.filter(|_| parts.byte_fallback).map(|id| tokens[id as usize]),
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": parts.byte_fallback,
            "byte_fallback": parts.byte_fallback,
            "ignore_merges": parts.ignore_merges,
            "vocab": ids,
            "merges": parts.merges,
        },
    });
    Ok(file.to_string())
}

/// What differs between the two algorithms.
struct Parts {
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    byte_fallback: bool,
    ignore_merges: bool,
    adds_bos: bool,
    merges: Vec<Value>,
}

fn texts(vocabulary: &Vocabulary) -> Result<Vec<&str>, TextError> {
    let text = |(id, token)| {
        let not_utf8 = |_| TextError::Json { message: format!("token {id} is not UTF-8") };
        std::str::from_utf8(token).map_err(not_utf8)
    };
    vocabulary.tokens.iter().enumerate().map(text).collect()
}

fn byte_pair(vocabulary: &Vocabulary) -> Result<Parts, TextError> {
    let name = vocabulary.pre.as_deref().unwrap_or_default();
    let unknown = || TextError::UnknownPreTokenizer { name: name.to_owned(), known: pre_tokenizer_names() };
    let splitter: &Splitter = find_splitter(name).ok_or_else(unknown)?;
    let mut steps: Vec<Value> = splitter
        .expressions
        .iter()
        .map(|e| json!({"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": false}))
        .collect();
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    steps.push(byte_level.clone());
    let merge = |(index, merge)| {
        let merge = String::from_utf8_lossy(merge);
        let (left, right) = merge.split_once(' ').ok_or_else(|| TextError::BadMerge {
            index,
            merge: merge.clone().into_owned(),
            reason: "expected two tokens with a space between them",
        })?;
        Ok(json!([left, right]))
    };
    Ok(Parts {
        normalizer: Value::Null,
        pre_tokenizer: json!({"type": "Sequence", "pretokenizers": steps}),
        decoder: byte_level,
        byte_fallback: false,
        ignore_merges: splitter.ignore_merges,
        adds_bos: vocabulary.add_bos.unwrap_or(splitter.add_bos),
        merges: vocabulary.merges.iter().enumerate().map(merge).collect::<Result<_, TextError>>()?,
    })
}

/// SentencePiece merges whatever makes a token, the highest score first; as pairs that is every way to cut every
/// token in two tokens.
fn sentence_piece(
    vocabulary: &Vocabulary,
    tokens: &[&str],
    ids: &HashMap<&str, usize>,
) -> Result<Parts, TextError> {
    if vocabulary.scores.is_empty() {
        return Err(TextError::MissingList { model: "llama", list: "scores" });
    }
    let mut merges: Vec<(f32, usize, &str, &str)> = Vec::new();
    for (id, token) in tokens.iter().enumerate() {
        if vocabulary.token_type(id) != TokenType::Normal {
            continue;
        }
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if ids.contains_key(left) && ids.contains_key(right) {
                merges.push((vocabulary.scores[id], id, left, right));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let prefix = vocabulary.add_space_prefix.unwrap_or(true);
    let mut normalizers = Vec::new();
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.push(json!({"type": "Prepend", "prepend": "▁"}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    normalizers.push(json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}));
    Ok(Parts {
        normalizer: json!({"type": "Sequence", "normalizers": normalizers}),
        pre_tokenizer: Value::Null,
        decoder: json!({"type": "Sequence", "decoders": decoders}),
        byte_fallback: true,
        ignore_merges: false,
        adds_bos: vocabulary.add_bos.unwrap_or(true),
        merges: merges.into_iter().map(|(_, _, left, right)| json!([left, right])).collect(),
    })
}

/// Begin- and end-of-text tokens around a text.
fn post_processor(vocabulary: &Vocabulary, tokens: &[&str], adds_bos: bool) -> Value {
    let begin = vocabulary.bos.filter(|_| adds_bos);
    let end = vocabulary.eos.filter(|_| vocabulary.add_eos.unwrap_or(false));
    if begin.is_none() && end.is_none() {
        return Value::Null;
    }
    let token = |id: u32| tokens[id as usize];
    let special = |id: u32, kind: u32| json!({"SpecialToken": {"id": token(id), "type_id": kind}});
    let around = |sequence: &str, kind: u32| {
        let text = json!({"Sequence": {"id": sequence, "type_id": kind}});
        let begin = begin.map(|id| special(id, kind));
        let end = end.map(|id| special(id, kind));
        begin.into_iter().chain([text]).chain(end).collect::<Vec<Value>>()
    };
    let named =
        |id: u32| (token(id).to_owned(), json!({"id": token(id), "ids": [id], "tokens": [token(id)]}));
    let names: serde_json::Map<String, Value> = begin.into_iter().chain(end).map(named).collect();
    json!({
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": around("A", 0).into_iter().chain(around("B", 1)).collect::<Vec<Value>>(),
        "special_tokens": names,
    })
}
