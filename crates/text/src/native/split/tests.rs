//! The scanner against regular expressions.

use std::sync::LazyLock;

use proptest::prelude::*;
use tokenizers::utils::SysRegex;

use super::{SPLITTERS, Splitter};

/// The expressions of each row, compiled.
static EXPRESSIONS: LazyLock<Vec<Vec<SysRegex>>> = LazyLock::new(|| {
    let compiled = |s: &Splitter| s.expressions.iter().map(|e| SysRegex::new(e).unwrap()).collect();
    SPLITTERS.iter().map(compiled).collect()
});

fn words(splitter: &Splitter, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let done: Result<(), ()> = splitter.split(text, |word| {
        words.push(word.to_owned());
        Ok(())
    });
    done.unwrap();
    words
}

/// What the expressions of a row cut `text` into.
fn expected(expressions: &[SysRegex], text: &str) -> Vec<String> {
    let mut words = vec![text.to_owned()];
    for expression in expressions {
        let cut = |word: &String| {
            let mut parts = Vec::new();
            let mut from = 0;
            for (start, end) in expression.find_iter(word) {
                parts.extend([word[from..start].to_owned(), word[start..end].to_owned()]);
                from = end;
            }
            parts.push(word[from..].to_owned());
            parts
        };
        words = words.iter().flat_map(cut).filter(|w| !w.is_empty()).collect();
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Strings of the characters at which the expressions decide.
fn text() -> impl Strategy<Value = String> {
    let pieces: &[&str] = &[
        " ", " ", "  ", "\n", "\r\n", "\t", "\u{a0}", "\u{3000}", "a", "Zed", "é", "日本", "\u{301}",
        "\u{93f}", "1", "23", "٣", "½", "Ⅷ", "!", "?!", "-", "'", "'s", "'LL", "'ve", "'re", "_", "😀",
        "\u{200d}", "\0", "ſ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|p| p.concat())
}

proptest! {
    #[test]
    fn every_splitter_cuts_as_its_expressions_do(text in text()) {
        for (splitter, expressions) in SPLITTERS.iter().zip(EXPRESSIONS.iter()) {
            let words = words(splitter, &text);
            prop_assert_eq!(&words, &expected(expressions, &text), "{}: {:?}", splitter.names[0], text);
        }
    }

    #[test]
    fn the_words_are_the_text_whatever_it_is(text in any::<String>()) {
        for splitter in SPLITTERS {
            let words = words(splitter, &text);
            prop_assert_eq!(words.concat(), text.as_str());
            prop_assert!(words.iter().all(|w| !w.is_empty()));
        }
    }
}

#[test]
fn a_megabyte_of_white_space_is_split_in_no_time() {
    let text = " ".repeat(1 << 20) + "x";
    for splitter in SPLITTERS {
        assert_eq!(words(splitter, &text).len(), 2, "{}", splitter.names[0]);
    }
}
