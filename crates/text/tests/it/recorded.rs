//! Token ids that llama.cpp recorded (`tests/record_token_ids.py`), for the three models.

use heirloom_text::{EncodeOptions, Tokenizer};
use serde::Deserialize;

use crate::models;

#[derive(Deserialize)]
struct Record {
    bos: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    plain: Vec<u32>,
}

fn check(model: &str, recorded: &str) {
    let record: Record = serde_json::from_str(recorded).unwrap();
    let tokenizer = models::tokenizer(model);
    let encode = |text: &str, add_special, parse_special| {
        tokenizer.encode(text, EncodeOptions { add_special, parse_special }).unwrap()
    };
    let mut wrong = Vec::new();
    for case in &record.cases {
        for (parse_special, expected) in [(true, &case.ids), (false, &case.plain)] {
            let ids = encode(&case.text, false, parse_special);
            if ids != *expected {
                wrong
                    .push(format!("{:?} special {parse_special}: {ids:?}, recorded {expected:?}", case.text));
            }
        }
        // Bytes that stand for a visible space come back as a space.
        let text = tokenizer.decode(&case.plain, false).unwrap();
        assert!(
            text == case.text || text == case.text.replace('▁', " "),
            "{:?} came back as {text:?}",
            case.text
        );
    }
    assert!(record.cases.len() > 70);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(encode("Hello", true, true), record.bos);
}

#[test]
fn smollm2_gives_the_tokens_that_llama_cpp_gives() {
    check("smollm2-135m-instruct", include_str!("../fixtures/smollm2.json"));
}

#[test]
fn qwen2_gives_the_tokens_that_llama_cpp_gives() {
    check("qwen2.5-coder-0.5b-instruct", include_str!("../fixtures/qwen.json"));
}

#[test]
fn gemma3_gives_the_tokens_that_llama_cpp_gives() {
    check("gemma3-270m", include_str!("../fixtures/gemma3.json"));
}

#[test]
fn the_models_name_their_ends_of_text() {
    let ends = |model: &str| {
        let tokenizer = models::tokenizer(model);
        let special = |id: &u32| tokenizer.is_special(*id);
        assert!(tokenizer.end_tokens().iter().all(special));
        Vec::from(tokenizer.end_tokens())
    };
    assert_eq!(ends("smollm2-135m-instruct"), [0, 2]);
    assert_eq!(ends("qwen2.5-coder-0.5b-instruct"), [151_643, 151_645]);
    // Not 212, `</s>`: there it is a piece of HTML.
    assert_eq!(ends("gemma3-270m"), [1, 106]);
}
