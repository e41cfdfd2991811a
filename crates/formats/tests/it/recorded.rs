//! Against other implementations: `fixtures/make_gguf.py` recorded what PyPI `gguf` gives (`dequantize` and `quantize`),
//! `fixtures/make_definitions.py` what the definitions of the other formats give in NumPy.

use heirloom_formats::by_name;
use heirloom_types::Codec;

use crate::fixture::Fixture;

struct Case {
    name: String,
    records: &'static [u8],
    values: Vec<f32>,
    inputs: Vec<f32>,
    encoded: &'static [u8],
}

fn gguf_cases() -> Vec<Case> {
    cases(include_bytes!("../fixtures/gguf.bin"), 17)
}

fn definition_cases() -> Vec<Case> {
    cases(include_bytes!("../fixtures/definitions.bin"), 6)
}

fn cases(fixture: &'static [u8], count: usize) -> Vec<Case> {
    let mut fixture = Fixture::new(fixture);
    let mut cases = Vec::new();
    for _ in 0..count {
        let length = usize::from(fixture.bytes(1)[0]);
        let name = std::str::from_utf8(fixture.bytes(length)).unwrap().to_owned();
        let format = by_name(&name).unwrap_or_else(|| panic!("a format `{name}`"));
        let count = fixture.number();
        let records = fixture.bytes(count * format.record_bytes);
        let values = fixture.floats(count * format.elements);
        let count = fixture.number();
        let inputs = fixture.floats(count * format.elements);
        let encoded = fixture.bytes(count * format.record_bytes);
        cases.push(Case { name, records, values, inputs, encoded });
    }
    assert!(fixture.is_empty(), "the whole fixture was read");
    cases
}

fn assert_decoded(case: &Case) {
    let format = by_name(&case.name).unwrap();
    let mut values = vec![f32::NAN; case.values.len()];
    format.decode(case.records, &mut values).unwrap();
    assert!(!case.values.is_empty());
    for (i, (actual, expected)) in values.iter().zip(&case.values).enumerate() {
        let (record, element) = (i / format.elements, i % format.elements);
        let place = format!("`{}`, record {record}, element {element}", case.name);
        assert_eq!(actual.to_bits(), expected.to_bits(), "{place}: {actual} instead of {expected}");
    }
}

fn assert_encoded(case: &Case) {
    let format = by_name(&case.name).unwrap();
    let mut records = vec![0xAA; case.encoded.len()];
    format.encode(&case.inputs, &mut records).unwrap();
    let pairs = records.chunks(format.record_bytes).zip(case.encoded.chunks(format.record_bytes));
    for (i, (actual, expected)) in pairs.enumerate() {
        assert_eq!(actual, expected, "`{}`, record {i}", case.name);
    }
}

// proves: D4
#[test]
fn decoded_values_equal_ggufs_to_the_bit() {
    gguf_cases().iter().for_each(assert_decoded);
}

// proves: D4
#[test]
fn decoded_values_equal_the_definitions_to_the_bit() {
    definition_cases().iter().for_each(assert_decoded);
}

#[test]
fn simple_formats_encode_to_the_same_bytes_as_gguf() {
    let cases: Vec<Case> = gguf_cases().into_iter().filter(|case| !case.inputs.is_empty()).collect();
    assert_eq!(cases.len(), 10);
    cases.iter().for_each(assert_encoded);
}

#[test]
fn microscaling_formats_encode_as_the_specification_converts() {
    let cases: Vec<Case> = definition_cases().into_iter().filter(|case| !case.inputs.is_empty()).collect();
    assert_eq!(cases.len(), 5);
    cases.iter().for_each(assert_encoded);
}

#[test]
fn gguf_type_numbers_name_the_formats() {
    let numbers = [
        (1, "f16"),
        (2, "q4_0"),
        (3, "q4_1"),
        (6, "q5_0"),
        (7, "q5_1"),
        (8, "q8_0"),
        (10, "q2_k"),
        (11, "q3_k"),
        (12, "q4_k"),
        (13, "q5_k"),
        (14, "q6_k"),
        (20, "iq4_nl"),
        (23, "iq4_xs"),
        (30, "bf16"),
        (34, "tq1_0"),
        (35, "tq2_0"),
        (39, "mxfp4"),
    ];
    for (number, name) in numbers {
        let format = heirloom_formats::by_gguf_type(number).unwrap();
        assert_eq!(format.name, name);
    }
    assert!(heirloom_formats::by_gguf_type(9).is_none());
}
