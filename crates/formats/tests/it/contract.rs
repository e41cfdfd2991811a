//! The contract's worked examples: sizes, places and values. Their decoders run in `tests/python/test_decoders.py`.

use heirloom_types::{Codec, Records, StructLayout};

use crate::contract_types::{
    codebook2, examples, int4_block, linear_int4, linear_int4_fixed, scaled_codebook2,
};
use heirloom_formats::codebook::Codebook;

// proves: E7, L1, C4
#[test]
fn the_contracts_types_have_its_sizes_and_constants_take_no_bytes() {
    let sizes = [int4_block(), linear_int4_fixed(), linear_int4(), codebook2(), scaled_codebook2()]
        .map(|ty| ty.record_bytes().unwrap());
    assert_eq!(sizes, [20, 64, 76, 8, 12]);
    let codebook = linear_int4_fixed();
    assert_eq!(codebook.constant("scale").unwrap().as_tensor().unwrap().as_slice::<f32>().unwrap(), [0.25]);
}

// proves: E1, E2, E7
#[test]
fn one_type_serves_payloads_of_any_number_of_records() {
    let layout = StructLayout::new(int4_block()).unwrap();
    let count = |bytes: usize| Records::new(&layout, &vec![0; bytes]).map(|records| records.len());
    assert_eq!((count(2560).unwrap(), count(5120).unwrap(), count(0).unwrap()), (128, 256, 0));
    assert!(count(30).is_err());
}

// proves: E7
#[test]
fn stored_and_constant_parameters_share_one_decoder() {
    assert!(linear_int4().decoder().is_some());
    assert_eq!(linear_int4().decoder(), linear_int4_fixed().decoder());
}

// proves: E7
#[test]
fn the_scaled_codebook_decodes_natively_to_the_same_values() {
    let (_, record, expected) = examples().pop().unwrap();
    let format = Codebook::new(32, &[-1.0, -0.25, 0.25, 1.0], true).unwrap();
    assert_eq!(format.record_bytes(), 12);
    let mut values = [0.0; 32];
    format.decode(&record, &mut values).unwrap();
    assert_eq!(values[..], expected[..]);
}
