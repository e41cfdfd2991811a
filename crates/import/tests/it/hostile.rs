//! Files that are wrong: each gives an error that names the file and the place, none panics or allocates what it
//! merely claims.

use heirloom_import::ImportError;
use proptest::prelude::*;

use crate::build::{File, read, sample, string};

fn message(file: &File) -> String {
    file.read().unwrap_err().to_string()
}

#[test]
fn a_file_cut_anywhere_is_an_error_that_names_it() {
    let bytes = sample().bytes();
    assert!(read(bytes.clone()).is_ok());
    for length in 0..bytes.len() {
        let error = read(Vec::from(&bytes[..length])).unwrap_err();
        assert!(error.to_string().contains("`model.gguf`"), "{error}");
        if length >= 4 {
            assert!(matches!(error, ImportError::Truncated { .. }), "{length}: {error}");
        }
    }
}

#[test]
fn a_truncated_file_says_what_was_expected_where() {
    let bytes = sample().bytes();
    let error = read(Vec::from(&bytes[..bytes.len() - 1])).unwrap_err();
    let (needed, left) = (4, 3);
    assert_eq!(
        error.to_string(),
        format!(
            "`model.gguf` is truncated: data of tensor `one` at offset {} needs {needed} bytes and {left} are left; \
             fetch or copy the file again",
            bytes.len() - 4
        )
    );
}

#[test]
fn other_files_and_versions_are_refused_by_name() {
    let other = read(Vec::from(*b"PK\x03\x04rest of the file")).unwrap_err().to_string();
    assert_eq!(other, "`model.gguf` is no GGUF file: it begins with [50, 4b, 03, 04], not with \"GGUF\"");
    assert!(matches!(read(Vec::new()), Err(ImportError::NotGguf { .. })));
    assert!(matches!(sample().version(1).read(), Err(ImportError::UnsupportedVersion { version: 1, .. })));
    assert!(matches!(sample().version(4).read(), Err(ImportError::UnsupportedVersion { version: 4, .. })));
    assert!(matches!(sample().version(3u32.swap_bytes()).read(), Err(ImportError::BigEndian { .. })));
}

#[test]
fn an_unknown_tensor_type_is_named_with_what_is_known() {
    let message_of = |kind| message(&File::new().describe("blk.0.attn_q.weight", &[256], kind, 0));
    assert!(message_of(99).starts_with(
        "`model.gguf`: tensor `blk.0.attn_q.weight` has type 99, which is not supported; supported are f32, f16, q4_0,"
    ));
    assert!(message_of(19).contains("has type 19 (IQ1_S), which is not supported"));
}

#[test]
fn counts_and_lengths_that_the_file_cannot_hold_are_refused_before_anything_is_allocated() {
    let huge = u64::MAX.to_le_bytes();
    let array = |element: u32, count: u64| {
        let bytes = [Vec::from(element.to_le_bytes()), Vec::from(count.to_le_bytes())].concat();
        File::new().value("k", 9, &bytes)
    };
    for file in [
        File::new().value("k", 8, &huge),
        array(0, u64::MAX),
        array(4, 1 << 62),
        array(8, 1 << 61),
        array(9, 1 << 40),
    ] {
        assert!(matches!(file.read(), Err(ImportError::Truncated { .. })), "{}", message(&file));
    }
    for place in [8, 16] {
        let mut bytes = sample().bytes();
        bytes[place..place + 8].iter_mut().for_each(|b| *b = 0xff);
        assert!(matches!(read(bytes), Err(ImportError::Truncated { .. })));
    }
}

#[test]
fn values_that_contradict_the_format_are_refused() {
    let deep: Vec<u8> =
        std::iter::repeat_n([9u32.to_le_bytes(), [1, 0, 0, 0], [0; 4]].concat(), 20).flatten().collect();
    for (file, expected) in [
        (File::new().value("k", 7, &[2]), "a boolean is 0 or 1, not 2"),
        (File::new().value("k", 13, &[0; 8]), "value type 13 does not exist"),
        (File::new().unsigned("k", 1).unsigned("k", 2), "the key occurs twice"),
        (File::new().value("k", 9, &deep), "arrays nest deeper than 8"),
        (
            File::new().unsigned("general.alignment", 24),
            "metadata `general.alignment` is 24; expected a power of two",
        ),
        (
            File::new().text("general.alignment", "x"),
            "metadata `general.alignment` is \"x\"; expected a power of two",
        ),
    ] {
        let message = message(&file);
        assert!(message.contains(expected) && message.starts_with("`model.gguf`: "), "{message}");
    }
    let mut bytes = File::new().unsigned("key", 1).bytes();
    bytes[32] = 0xff;
    assert!(read(bytes).unwrap_err().to_string().contains("key of metadata 0 at offset 32"));
}

#[test]
fn tensors_that_overlap_or_overflow_are_refused() {
    let blocks = [0; 256];
    for (file, expected) in [
        (File::new().tensor("a", &[16], 0, &blocks).describe("b", &[1], 0, 32), "overlaps that of `a`"),
        (File::new().tensor("a", &[16], 0, &blocks).describe("a", &[1], 0, 64), "the name occurs twice"),
        (File::new().describe("a", &[1], 0, 4), "its offset 4 is no multiple of the alignment 32"),
        (File::new().describe("a", &[33], 8, 0), "its rows of 33 elements are no whole q8_0 blocks of 32"),
        (File::new().describe("a", &[1 << 40, 1 << 40], 0, 0), "overflow"),
        (File::new().describe("a", &[1 << 62, 2], 24, 0), "overflow"),
        (File::new().describe("a", &[1; 5], 0, 0), "it has 5 dimensions; at most 4 are possible"),
        (File::new().describe("a", &[1], 0, u64::MAX - 31), "data of tensor `a`"),
        (File::new().describe("a", &[1 << 40], 0, 0), "data of tensor `a`"),
        (File::new().unsigned("general.alignment", 1 << 31).describe("a", &[1], 0, 0), "data of tensor `a`"),
    ] {
        let message = message(&file);
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = sample().bytes();
        for (place, byte) in edits {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(file) = read(bytes) {
            for key in file.keys() {
                let value = file.value(key).unwrap();
                prop_assert!(value.to_string().len() < 300);
                if let Some(array) = value.as_array() {
                    prop_assert!(array.iter().count() <= array.len());
                }
            }
            for tensor in file.tensors() {
                prop_assert_eq!(file.data(tensor).len(), tensor.range().len());
            }
        }
    }

    #[test]
    fn random_bytes_behind_the_magic_never_panic(rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = Vec::from(*b"GGUF\x03\0\0\0");
        bytes.extend(rest);
        let _: Result<_, _> = read(bytes);
    }

    #[test]
    fn any_string_length_is_checked(length in any::<u64>()) {
        let bytes = [Vec::from(length.to_le_bytes()), string("text")].concat();
        let file = File::new().value("k", 8, &bytes);
        // Only lengths within what is there, padding included, can be read.
        prop_assert!(length < 64 || file.read().is_err());
    }
}
