//! Text that comes token by token.

use heirloom_text::{NativeTokenizer, StreamDecoder, Tokenizer};
use proptest::prelude::*;

use crate::models;
use crate::vocabulary::{byte_pair, sentence_piece};

/// What each token brings, and what the end does.
fn pieces(tokenizer: &dyn Tokenizer, ids: &[u32]) -> Vec<String> {
    let mut stream = StreamDecoder::new(tokenizer);
    let mut pieces: Vec<String> = ids.iter().map(|id| stream.push(*id).to_owned()).collect();
    pieces.push(stream.finish().to_owned());
    pieces
}

#[test]
fn a_character_comes_with_its_last_byte() {
    let tokenizer = models::tokenizer("smollm2-135m-instruct");
    let ids = tokenizer.encode("a🎉é", heirloom_text::EncodeOptions::default()).unwrap();
    let pieces = pieces(&tokenizer, &ids);
    assert!(ids.len() > 3, "{ids:?}");
    assert_eq!(pieces.concat(), "a🎉é");
    assert!(pieces.iter().all(|piece| !piece.contains('\u{fffd}')), "{pieces:?}");
    assert!(pieces.iter().any(String::is_empty), "{pieces:?}");
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such_and_do_not_hold_up_what_follows() {
    let tokenizer = NativeTokenizer::new(sentence_piece()).unwrap();
    // E6 begins a character of three bytes; `a` is none of them.
    assert_eq!(pieces(&tokenizer, &[5, 3, 5, 3]), ["a", "", "\u{fffd}a", "", "\u{fffd}"]);
    assert_eq!(pieces(&tokenizer, &[3, 3, 2]), ["", "\u{fffd}", "\u{fffd}\n", ""]);
}

#[test]
fn control_tokens_are_left_out_and_unknown_ids_shown() {
    let tokenizer = NativeTokenizer::new(byte_pair()).unwrap();
    assert_eq!(pieces(&tokenizer, &[4, 7, 8, 99]), ["ab", "", "<u>", "\u{fffd}", ""]);
}

#[test]
fn a_space_before_the_first_word_is_kept_in_a_text_that_goes_on() {
    let tokenizer = NativeTokenizer::new(sentence_piece()).unwrap();
    assert_eq!(pieces(&tokenizer, &[9, 9]), [" a", " a", ""]);
}

#[test]
fn the_pieces_are_the_whole_text_whatever_the_tokens() {
    let tokenizer = models::tokenizer("qwen2.5-coder-0.5b-instruct");
    let ids = prop::collection::vec(0..150_000u32, 0..40);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) };
    let whole = |ids: Vec<u32>| {
        prop_assert_eq!(pieces(&tokenizer, &ids).concat(), tokenizer.decode(&ids, true).unwrap());
        Ok(())
    };
    proptest::test_runner::TestRunner::new(config).run(&ids, whole).unwrap();
}
