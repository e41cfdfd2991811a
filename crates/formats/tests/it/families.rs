//! What the families of formats give, and what they refuse.

use heirloom_formats::codebook::Codebook;
use heirloom_formats::k_means::KMeans;
use heirloom_formats::mat_mul_n_bits::{MatMulNBits, ZeroPoints};
use heirloom_formats::mixed_bits::MixedBits;
use heirloom_formats::nvfp4::Nvfp4;
use heirloom_formats::{FormatError, Shaped};
use heirloom_mem::DType;
use heirloom_types::{Codec, CodecError};

use crate::fixture::Fixture;

fn decode(codec: &dyn Codec, records: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; records.len() / codec.record_bytes() * codec.elements()];
    codec.decode(records, &mut values).unwrap();
    values
}

fn assert_same(actual: &[f32], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len());
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert_eq!(a.to_bits(), e.to_bits(), "element {i}: {a} instead of {e}");
    }
}

// The fixture's script compares its values with ONNX Runtime's.
// proves: D4
#[test]
fn mat_mul_n_bits_reads_what_onnx_runtime_stores() {
    let mut fixture = Fixture::new(include_bytes!("../fixtures/mat_mul_n_bits.bin"));
    let mut cases = 0;
    while !fixture.is_empty() {
        let [rows, columns, bits, block, zero_points, scale, bytes] =
            std::array::from_fn(|_| fixture.number());
        let zero_points = [ZeroPoints::Middle, ZeroPoints::Packed, ZeroPoints::Numbers][zero_points];
        let scale = DType::from_onnx(scale as i32).unwrap();
        let format = MatMulNBits::new(rows, columns, bits as u32, block, zero_points, scale).unwrap();
        assert_eq!(format.record_bytes(), bytes);
        let record = fixture.bytes(bytes);
        assert_same(&decode(&format, record), &fixture.floats(rows * columns));
        cases += 1;
    }
    assert_eq!(cases, 9);
}

// proves: D4
#[test]
fn nvfp4_equals_its_definition_to_the_bit() {
    let mut fixture = Fixture::new(include_bytes!("../fixtures/nvfp4.bin"));
    let mut cases = 0;
    while !fixture.is_empty() {
        let elements = fixture.number();
        let format = Nvfp4::new(elements).unwrap();
        let record = fixture.bytes(format.record_bytes());
        assert_same(&decode(&format, record), &fixture.floats(elements));
        cases += 1;
    }
    assert_eq!(cases, 3);
}

#[test]
fn mixed_bits_decodes_blocks_of_2_and_4_bits_by_hand() {
    let format = MixedBits::new(8, &[2, 4]).unwrap();
    // Codes 0, 1, 2, 3 twice with scale 0.5; codes 0 to 7 with scale 2.
    let record = [0xE4, 0xE4, 0x00, 0x38, 0x10, 0x32, 0x54, 0x76, 0x00, 0x40];
    let expected =
        [-1.0, -0.5, 0.0, 0.5, -1.0, -0.5, 0.0, 0.5, -16.0, -14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -2.0];
    assert_same(&decode(&format, &record), &expected);
}

#[test]
fn a_codebook_of_three_entries_decodes_by_hand_and_refuses_a_fourth() {
    let format = Codebook::new(4, &[5.0, -1.0, 0.25], true).unwrap();
    assert_eq!(format.record_bytes(), 5);
    // Indices 0, 1, 2, 0 and the scale 2.
    assert_same(&decode(&format, &[0b00_10_01_00, 0, 0, 0, 0x40]), &[10.0, -2.0, 0.5, 10.0]);
    let mut values = [0.0; 4];
    let error = format.decode(&[0b00_11_01_00, 0, 0, 0, 0x40], &mut values).unwrap_err();
    assert_eq!(error.to_string(), "record 0: element 2 has index 3, the table 3 entries");
}

#[test]
fn an_unscaled_codebook_takes_the_nearest_entry() {
    let table = [3.0, -2.0, 0.5];
    let format = Codebook::new(5, &table, false).unwrap();
    let mut records = vec![0; format.record_bytes()];
    format.encode(&[100.0, -0.8, -0.7, 1.7, 1.8], &mut records).unwrap();
    assert_same(&decode(&format, &records), &[3.0, -2.0, 0.5, 0.5, 3.0]);
}

#[test]
fn k_means_finds_the_clusters_of_clustered_values() {
    let format = KMeans::new(6, 3).unwrap();
    let values = [1.0, 10.0, -5.0, 1.5, 10.5, -5.5];
    let mut record = vec![0; format.record_bytes()];
    format.encode(&values, &mut record).unwrap();
    assert_same(&decode(&format, &record), &[1.25, 10.25, -5.25, 1.25, 10.25, -5.25]);
    record[0] |= 3;
    let error = format.decode(&record, &mut [0.0; 6]).unwrap_err();
    assert!(matches!(error, CodecError::Malformed { record: 0, .. }), "{error}");
}

#[test]
fn impossible_parameters_are_refused_by_name() {
    let refusals = [
        Nvfp4::new(24).unwrap_err(),
        Nvfp4::new(0).unwrap_err(),
        KMeans::new(10, 1).unwrap_err(),
        KMeans::new(0, 4).unwrap_err(),
        MixedBits::new(12, &[4]).unwrap_err(),
        MixedBits::new(8, &[]).unwrap_err(),
        MixedBits::new(8, &[9]).unwrap_err(),
        Codebook::new(0, &[1.0, 2.0], true).unwrap_err(),
        Codebook::new(8, &[1.0], true).unwrap_err(),
        Codebook::new(8, &[1.0, f32::NAN], true).unwrap_err(),
        MatMulNBits::new(4, 64, 3, 32, ZeroPoints::Middle, DType::Float).unwrap_err(),
        MatMulNBits::new(4, 64, 4, 24, ZeroPoints::Middle, DType::Float).unwrap_err(),
        MatMulNBits::new(0, 64, 4, 32, ZeroPoints::Middle, DType::Float).unwrap_err(),
        MatMulNBits::new(4, 1 << 24, 4, 32, ZeroPoints::Middle, DType::Float).unwrap_err(),
        MatMulNBits::new(4, 64, 4, 32, ZeroPoints::Middle, DType::Int8).unwrap_err(),
    ];
    let names: Vec<&str> = refusals
        .iter()
        .map(|error| match error {
            FormatError::Parameter { parameter, .. } => *parameter,
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(
        names,
        [
            "elements",
            "elements",
            "entries",
            "elements",
            "block",
            "widths",
            "widths",
            "block",
            "table",
            "table",
            "bits",
            "block_size",
            "N",
            "K",
            "scales"
        ]
    );
    assert_eq!(refusals[10].to_string(), "mat_mul_n_bits: `bits` is 3; it must be 2, 4 or 8");
}

#[test]
fn a_family_gives_each_shape_its_own_identity() {
    let shape = |rows, columns, zero_points| {
        MatMulNBits::new(rows, columns, 4, 32, zero_points, DType::Float16).unwrap().type_id().unwrap()
    };
    let ids = [
        shape(896, 4864, ZeroPoints::Middle),
        shape(4864, 896, ZeroPoints::Middle),
        shape(896, 4864, ZeroPoints::Packed),
        Nvfp4::new(4864).unwrap().type_id().unwrap(),
        KMeans::new(4864, 16).unwrap().type_id().unwrap(),
    ];
    for (i, id) in ids.iter().enumerate() {
        assert!(id.get() >= 1 << 59 && !ids[..i].contains(id));
    }
    assert_eq!(shape(896, 4864, ZeroPoints::Middle), ids[0]);
}
