//! Tokenizers from `tokenizer.json`.

use heirloom_text::{
    EncodeOptions, JsonTokenizer, NativeTokenizer, StreamDecoder, TextError, Tokenizer, tokenizer_json,
};

use crate::vocabulary::{byte_pair, sentence_piece};

/// A file of the kind that BERT's models have: its text depends on the neighbours.
const WORD_PIECE: &str = r###"{
 "version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [{"id": 0, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true}],
 "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
           "max_input_chars_per_word": 100,
           "vocab": {"[CLS]": 0, "[UNK]": 1, "play": 2, "##ing": 3, "now": 4, "!": 5}}
}"###;

fn encode(tokenizer: &dyn Tokenizer, text: &str, parse_special: bool) -> Vec<u32> {
    tokenizer.encode(text, EncodeOptions { add_special: true, parse_special }).unwrap()
}

#[test]
fn a_vocabulary_written_as_tokenizer_json_is_the_same_tokenizer() {
    let mut with_bos = byte_pair();
    (with_bos.bos, with_bos.add_bos) = (Some(7), Some(true));
    for vocabulary in [byte_pair(), with_bos, sentence_piece()] {
        let json = JsonTokenizer::from_json(tokenizer_json(&vocabulary).unwrap().as_bytes()).unwrap();
        let native = NativeTokenizer::new(vocabulary).unwrap();
        assert!(json.is_context_free());
        for text in ["", "a", " ab", "a  b", "ba ab a"] {
            for parse_special in [true, false] {
                let ids = encode(&native, text, parse_special);
                assert_eq!(encode(&json, text, parse_special), ids, "{text:?} {parse_special}");
            }
        }
        let special = if native.token_id("<s>").is_some() { "ab<s>a" } else { "ab <u>a<|x|>b" };
        assert_eq!(encode(&json, special, true), encode(&native, special, true));
    }
}

#[test]
fn begin_and_end_are_named_by_the_caller() {
    let mut vocabulary = byte_pair();
    (vocabulary.bos, vocabulary.add_bos) = (Some(7), Some(true));
    let json = tokenizer_json(&vocabulary).unwrap();
    let read = || JsonTokenizer::from_json(json.as_bytes()).unwrap();
    assert_eq!((read().begin_of_text(), read().adds_begin_of_text()), (None, false));
    let tokenizer = read().with_begin("<|x|>").unwrap().with_ends(&["<u>", "<|x|>", "<u>"]).unwrap();
    assert_eq!((tokenizer.begin_of_text(), tokenizer.adds_begin_of_text()), (Some(7), true));
    assert_eq!(tokenizer.end_tokens(), [7, 8]);
    assert!(tokenizer.is_special(7) && !tokenizer.is_special(8));
    let error = read().with_ends(&["</s>"]).err().unwrap().to_string();
    assert_eq!(error, "tokenizer.json: `</s>` is not one of its tokens");
}

#[test]
fn text_that_depends_on_the_neighbours_streams_too() {
    let tokenizer = JsonTokenizer::from_json(WORD_PIECE.as_bytes()).unwrap();
    assert!(!tokenizer.is_context_free());
    let ids = encode(&tokenizer, "[CLS]playing now!", true);
    assert_eq!(ids, [0, 2, 3, 4, 5]);
    let mut stream = StreamDecoder::new(&tokenizer);
    let pieces: Vec<String> = ids.iter().map(|id| stream.push(*id).to_owned()).collect();
    assert_eq!(pieces, ["", "play", "ing", " now", "!"]);
    assert_eq!(stream.finish(), "");
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "playing now!");
    assert!(matches!(tokenizer.decode(&[6], true), Err(TextError::UnknownId { id: 6, size: 6, .. })));
}

#[test]
fn a_file_that_is_none_is_refused() {
    for json in ["", "{}", "[1, 2", "{\"version\": \"1.0\", \"model\": {\"type\": \"Nope\"}}"] {
        let error = JsonTokenizer::from_json(json.as_bytes()).err().unwrap();
        assert!(error.to_string().starts_with("tokenizer.json: "), "{error}");
    }
}
