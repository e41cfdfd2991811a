//! Our tables against the `tokenizers` crate, over the same vocabulary written as `tokenizer.json`.

use heirloom_text::{EncodeOptions, JsonTokenizer, NativeTokenizer, Tokenizer, tokenizer_json};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::models;

/// Texts in which words, white space, digits, scripts and special tokens meet.
fn text() -> impl Strategy<Value = String> {
    let pieces: &[&str] = &[
        " ",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "a",
        "the",
        " the",
        "ing",
        "Hello",
        "é",
        "日本",
        "\u{301}",
        "1",
        "2025",
        "٣",
        "!",
        "...",
        "'s",
        "n't",
        "_",
        "😀",
        "\u{200d}",
        "<|im_end|>",
        "<|im_start|>",
        "<|endoftext|>",
        "<bos>",
        "<|im",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => "[a-zA-Z]{1,12}",
        1 => "\\PC{1,4}",
    ];
    prop::collection::vec(piece, 0..20).prop_map(|p| p.concat())
}

fn compare(model: &str, cases: u32) {
    let vocabulary = models::vocabulary(model);
    let json = JsonTokenizer::from_json(tokenizer_json(&vocabulary).unwrap().as_bytes()).unwrap();
    let native = NativeTokenizer::new(vocabulary).unwrap();
    assert_eq!(native.size(), json.size());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let same = |text: String| {
        for parse_special in [true, false] {
            let options = EncodeOptions { add_special: true, parse_special };
            let ids = native.encode(&text, options).unwrap();
            prop_assert_eq!(&ids, &json.encode(&text, options).unwrap(), "{:?} {:?}", &text, options);
            for skip in [true, false] {
                prop_assert_eq!(native.decode(&ids, skip).unwrap(), json.decode(&ids, skip).unwrap());
            }
            for id in ids {
                prop_assert_eq!(native.token_bytes(id), json.token_bytes(id));
                prop_assert_eq!(native.is_special(id), json.is_special(id));
            }
        }
        Ok(())
    };
    runner.run(&text(), same).unwrap();
}

#[test]
fn smollm2_equals_the_tokenizers_crate() {
    compare("smollm2-135m-instruct", 400);
}

#[test]
fn qwen2_equals_the_tokenizers_crate() {
    compare("qwen2.5-coder-0.5b-instruct", 400);
}

#[test]
fn gemma3_equals_the_tokenizers_crate() {
    compare("gemma3-270m", 400);
}
