//! Small vocabularies made by hand: what the algorithms do at their edges, and what is refused.

use heirloom_text::{
    EncodeOptions, NativeTokenizer, StringTable, TextError, TokenType, Tokenizer, Vocabulary,
    VocabularyModel, encode_rendered, pre_tokenizer_names,
};

fn table(strings: &[&str]) -> StringTable {
    strings.iter().collect()
}

/// Bytes a, b, c, space; ab, abc, " a"; a control and a user-defined token.
pub(crate) fn byte_pair() -> Vocabulary {
    let tokens = ["a", "b", "c", "Ġ", "ab", "abc", "Ġa", "<|x|>", "<u>"];
    let mut vocabulary = Vocabulary::new(VocabularyModel::BytePair, table(&tokens));
    vocabulary.token_types = vec![TokenType::Normal; 9];
    vocabulary.token_types[7] = TokenType::Control;
    vocabulary.token_types[8] = TokenType::UserDefined;
    vocabulary.merges = table(&["a b", "ab c", "Ġ a"]);
    vocabulary.pre = Some("gpt-2".into());
    vocabulary
}

/// `<unk>`, `<s>`, two byte tokens and pieces with scores.
pub(crate) fn sentence_piece() -> Vocabulary {
    let tokens = ["<unk>", "<s>", "<0x0A>", "<0xE6>", "▁", "a", "b", "ab", "ba", "▁a", "é"];
    let mut vocabulary = Vocabulary::new(VocabularyModel::SentencePiece, table(&tokens));
    vocabulary.scores = vec![0.0, 0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -1.0, -0.5, -2.0, -9.0];
    vocabulary.token_types = vec![TokenType::Normal; 11];
    vocabulary.token_types[0] = TokenType::Unknown;
    vocabulary.token_types[1] = TokenType::Control;
    vocabulary.token_types[2] = TokenType::Byte;
    vocabulary.token_types[3] = TokenType::Byte;
    (vocabulary.unknown, vocabulary.bos) = (Some(0), Some(1));
    vocabulary
}

fn plain(vocabulary: Vocabulary, text: &str) -> Result<Vec<u32>, TextError> {
    let options = EncodeOptions { add_special: false, parse_special: false };
    NativeTokenizer::new(vocabulary)?.encode(text, options)
}

#[test]
fn merges_apply_by_rank_and_from_the_left() {
    assert_eq!(plain(byte_pair(), "abcab").unwrap(), [5, 4]);
    assert_eq!(plain(byte_pair(), "aab bc").unwrap(), [0, 4, 3, 1, 2]);
    // `Ġ a` comes after `a b`: the space stays alone.
    assert_eq!(plain(byte_pair(), "a ab").unwrap(), [0, 3, 4]);
    assert_eq!(plain(byte_pair(), "a a").unwrap(), [0, 6]);
}

#[test]
fn scores_decide_what_merges_and_equal_ones_merge_from_the_left() {
    let mut vocabulary = sentence_piece();
    vocabulary.add_space_prefix = Some(false);
    // `ba` has the best score: a|ba, although `ab` comes first.
    assert_eq!(plain(vocabulary.clone(), "aba").unwrap(), [5, 8]);
    vocabulary.scores[8] = -1.0;
    assert_eq!(plain(vocabulary.clone(), "aba").unwrap(), [7, 5]);
    vocabulary.scores[8] = f32::NAN;
    assert_eq!(plain(vocabulary, "ab").unwrap(), [7]);
}

#[test]
fn sentence_piece_writes_spaces_bytes_and_unknown_characters() {
    assert_eq!(plain(sentence_piece(), "a\né").unwrap(), [9, 2, 10]);
    // 日 is E6 97 A5: one byte has a token, the others are unknown.
    assert_eq!(plain(sentence_piece(), "日").unwrap(), [4, 3, 0, 0]);
    let mut vocabulary = sentence_piece();
    vocabulary.unknown = None;
    let error = plain(vocabulary, "日").unwrap_err();
    assert_eq!(error.to_string(), "the vocabulary has no token for byte 0x97 and no unknown token");
}

#[test]
fn special_tokens_begin_and_end_a_text_as_the_file_says() {
    let mut vocabulary = byte_pair();
    (vocabulary.bos, vocabulary.eos) = (Some(7), Some(8));
    let encode = |vocabulary: &Vocabulary, text: &str| {
        NativeTokenizer::new(vocabulary.clone()).unwrap().encode(text, EncodeOptions::default()).unwrap()
    };
    assert_eq!(encode(&vocabulary, "a"), [0]);
    vocabulary.add_bos = Some(true);
    vocabulary.add_eos = Some(true);
    assert_eq!(encode(&vocabulary, "a"), [7, 0, 8]);
    assert_eq!(encode(&vocabulary, ""), [7, 8]);
    assert_eq!(encode(&vocabulary, "<|x|>a<u>"), [7, 7, 0, 8, 8]);
    // A prompt that a template rendered may begin with the token already.
    let tokenizer = NativeTokenizer::new(vocabulary).unwrap();
    assert_eq!(encode_rendered(&tokenizer, "<|x|>a").unwrap(), [7, 0]);
    assert_eq!(encode_rendered(&tokenizer, "a").unwrap(), [7, 0]);
    // Llama's own default is to begin with `<s>` and a space.
    assert_eq!(encode(&sentence_piece(), "a"), [1, 9]);
}

#[test]
fn tokens_are_found_by_their_spelling_and_decoded_to_their_bytes() {
    let tokenizer = NativeTokenizer::new(byte_pair()).unwrap();
    assert_eq!((tokenizer.token_id("Ġa"), tokenizer.token_id("<|x|>")), (Some(6), Some(7)));
    assert_eq!((tokenizer.token_id("zz"), tokenizer.token_id("")), (None, None));
    assert_eq!(tokenizer.token_bytes(6).as_deref(), Some(&b" a"[..]));
    assert_eq!(tokenizer.token_bytes(9), None);
    assert_eq!(tokenizer.decode(&[6, 7, 8, 4], true).unwrap(), " a<u>ab");
    assert_eq!(tokenizer.decode(&[6, 7, 8, 4], false).unwrap(), " a<|x|><u>ab");
    let error = tokenizer.decode(&[0, 9], true).unwrap_err();
    assert_eq!(error.to_string(), "token id 9 (to decode) is not in the vocabulary of 9 tokens");
    let tokenizer = NativeTokenizer::new(sentence_piece()).unwrap();
    assert_eq!((tokenizer.token_id("▁a"), tokenizer.size()), (Some(9), 11));
    assert_eq!(tokenizer.decode(&[1, 9, 2, 3], true).unwrap(), "a\n\u{fffd}");
}

#[test]
fn vocabularies_that_do_not_fit_together_are_refused() {
    type Change = fn(&mut Vocabulary);
    let refused = |change: Change| {
        let mut vocabulary = byte_pair();
        change(&mut vocabulary);
        NativeTokenizer::new(vocabulary).err().unwrap().to_string()
    };
    let cases: [(Change, &str); 8] = [
        (|v| v.tokens = StringTable::default(), "the vocabulary holds no tokens"),
        (|v| v.token_types.truncate(3), "the vocabulary's `token_types` has 3 entries for 9 tokens"),
        (|v| v.bos = Some(9), "token id 9 (bos) is not in the vocabulary of 9 tokens"),
        (|v| v.merges = StringTable::default(), "a `gpt2` vocabulary needs `merges`"),
        (|v| v.merges = table(&["ab"]), "merge 0 `ab`: expected two tokens with a space between them"),
        (|v| v.merges = table(&["a b", "b q"]), "merge 1 `b q`: the right part is not a token"),
        (|v| v.merges = table(&["b a"]), "merge 0 `b a`: the result is not a token"),
        (|v| v.model = VocabularyModel::SentencePiece, "a `llama` vocabulary needs `scores`"),
    ];
    for (change, message) in cases {
        assert_eq!(refused(change), message);
    }
    let unknown = refused(|v| v.pre = Some("no-such".into()));
    assert!(
        unknown.starts_with("pre-tokenizer `no-such` is not supported; supported are gpt-2, "),
        "{unknown}"
    );
    assert!(pre_tokenizer_names().contains(&"qwen2") && pre_tokenizer_names().contains(&"smollm"));
    let model = VocabularyModel::from_name("bert").unwrap_err().to_string();
    assert!(model.starts_with("tokenizer model `bert` is not supported"), "{model}");
}

#[test]
fn the_same_spelling_twice_means_the_last_token() {
    let mut vocabulary = byte_pair();
    vocabulary.tokens.push(b"a");
    vocabulary.token_types.push(TokenType::Normal);
    assert_eq!(plain(vocabulary, "a").unwrap(), [9]);
}
