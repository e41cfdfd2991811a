//! What every format of the table must do.

use std::collections::HashSet;

use heirloom_formats::{FORMATS, Format, by_gguf_type, by_name, recognize};
use heirloom_types::{Codec, CodecError, StructLayout};

use crate::random::Random;

/// How much of a normally distributed signal an encoder may lose: RMS error over RMS. Each bound is about 5 % above
/// what the encoder does lose; a uniform quantizer of `n` codes over ±3 standard deviations loses `6 / n / √12`.
fn largest_relative_error(format: &Format) -> f64 {
    match format.name {
        "f16" => 0.0003,
        "bf16" => 0.0025,
        "q8_0" => 0.006,
        "q6_k" => 0.018,
        "q5_k" => 0.037,
        "q5_1" => 0.04,
        "q5_0" => 0.045,
        "q4_k" => 0.074,
        "q4_1" => 0.083,
        "q4_0" => 0.092,
        "iq4_nl" | "iq4_xs" => 0.08,
        "mxfp4" | "ocp_mxfp4" => 0.13,
        "ocp_mxfp6_e2m3" => 0.03,
        "ocp_mxfp6_e3m2" => 0.06,
        "ocp_mxfp8_e4m3" => 0.034,
        "ocp_mxfp8_e5m2" => 0.06,
        "nf4" => 0.098,
        "q3_k" => 0.153,
        "q2_k" => 0.28,
        "tq1_0" | "tq2_0" => 0.87,
        other => panic!("`{other}` has no error bound: give it one"),
    }
}

fn decode(format: &Format, records: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; records.len() / format.record_bytes * format.elements];
    format.decode(records, &mut values).unwrap();
    values
}

fn encode(format: &Format, values: &[f32]) -> Vec<u8> {
    let mut records = vec![0; values.len() / format.elements * format.record_bytes];
    format.encode(values, &mut records).unwrap();
    records
}

// proves: D4, L1
#[test]
fn a_record_has_the_size_of_its_declared_layout() {
    for format in FORMATS {
        let layout = StructLayout::new(format.declaration().clone()).unwrap();
        assert_eq!(layout.record_bytes, format.record_bytes, "`{}`", format.name);
        assert_eq!(layout.type_id, Some(format.type_id));
        assert!(format.declaration().decoder().is_some());
    }
}

// proves: C1, C6
#[test]
fn identities_names_and_gguf_numbers_are_unique() {
    let ids: HashSet<_> = FORMATS.iter().map(|f| f.type_id).collect();
    let names: HashSet<_> = FORMATS.iter().map(|f| f.name).collect();
    assert_eq!((ids.len(), names.len()), (FORMATS.len(), FORMATS.len()));
    for format in FORMATS {
        assert!((1_000_000..2_000_000).contains(&format.type_id.get()));
        assert_eq!(by_name(&format.name.to_uppercase()).unwrap().type_id, format.type_id);
        if let Some(number) = format.gguf_type {
            assert_eq!(by_gguf_type(number).unwrap().type_id, format.type_id);
            assert_eq!((format.type_id.get() - 1_000_000) / 100, u64::from(number));
        }
    }
}

#[test]
fn the_encoder_stays_within_its_error_bound() {
    for format in FORMATS {
        let mut random = Random(7);
        for scale in [1e-3, 0.05, 1.0, 300.0] {
            let values: Vec<f32> = random.normal(8192).iter().map(|v| v * scale).collect();
            let decoded = decode(format, &encode(format, &values));
            let square =
                |pairs: &mut dyn Iterator<Item = f32>| pairs.map(|v| f64::from(v).powi(2)).sum::<f64>();
            let error = square(&mut values.iter().zip(&decoded).map(|(a, b)| a - b));
            let relative = (error / square(&mut values.iter().copied())).sqrt();
            let bound = largest_relative_error(format);
            assert!(relative <= bound, "`{}` at scale {scale} loses {relative}, bound {bound}", format.name);
        }
    }
}

#[test]
fn zeros_survive_encoding() {
    for format in FORMATS {
        let zeros = vec![0.0; 4 * format.elements];
        assert!(decode(format, &encode(format, &zeros)).iter().all(|&v| v == 0.0), "`{}`", format.name);
    }
}

#[test]
fn values_that_are_no_numbers_are_refused_with_their_place() {
    for format in FORMATS {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![1.0; 2 * format.elements];
            let index = format.elements;
            values[index] = bad;
            let mut records = vec![0; 2 * format.record_bytes];
            let error = format.encode(&values, &mut records).unwrap_err();
            assert!(matches!(error, CodecError::Value { index: i, .. } if i == index), "{error}");
        }
    }
}

// proves: E1
#[test]
fn partial_records_and_wrong_lengths_are_refused() {
    for format in FORMATS {
        let (bytes, elements) = (format.record_bytes, format.elements);
        let mut values = vec![0.0; 2 * elements];
        let records = vec![0; 2 * bytes];
        for cut in [1, bytes - 1, bytes + 1] {
            let error = format.decode(&records[..cut], &mut values).unwrap_err();
            assert_eq!(error, CodecError::PartialRecord { bytes: cut, record_bytes: bytes });
        }
        let error = format.decode(&records, &mut values[1..]).unwrap_err();
        assert_eq!(error, CodecError::Elements { expected: 2 * elements, actual: 2 * elements - 1 });
        format.decode(&[], &mut []).unwrap();
        assert!(format.encode(&values[1..], &mut records.clone()).is_err());
    }
}

// proves: L5
#[test]
fn any_bytes_decode_without_a_panic_and_without_looking_at_their_neighbours() {
    for format in FORMATS {
        let mut random = Random(99);
        let records = random.bytes(64 * format.record_bytes);
        let all = decode(format, &records);
        for (record, values) in records.chunks(format.record_bytes).zip(all.chunks(format.elements)) {
            let alone: Vec<u32> = decode(format, record).iter().map(|v| v.to_bits()).collect();
            assert_eq!(alone, values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), "`{}`", format.name);
        }
    }
}

#[test]
fn a_range_may_begin_and_end_within_records() {
    for format in FORMATS {
        let records = Random(3).bytes(3 * format.record_bytes);
        let all = decode(format, &records);
        for (first, last) in [(0, 1), (format.elements / 2, all.len() - 1), (all.len(), all.len())] {
            let mut part = vec![0.0; last - first];
            format.decode_range(&records, first, &mut part).unwrap();
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&part), bits(&all[first..last]), "`{}`", format.name);
        }
        let mut two = [0.0; 2];
        assert!(format.decode_range(&records, all.len() - 1, &mut two).is_err());
    }
}

// proves: D2
#[test]
fn a_layout_is_recognized_by_identity_and_declaration_together() {
    for format in FORMATS {
        let layout = StructLayout::new(format.declaration().clone()).unwrap();
        assert_eq!(recognize(&layout).unwrap().name, format.name);
        let other = FORMATS.iter().find(|f| f.type_id != format.type_id).unwrap();
        let stolen = StructLayout {
            type_id: Some(format.type_id),
            ..StructLayout::new(other.declaration().clone()).unwrap()
        };
        assert!(recognize(&stolen).is_none(), "`{}` claimed by `{}`", format.name, other.name);
        let anonymous = StructLayout { type_id: None, ..layout };
        assert!(recognize(&anonymous).is_none());
    }
}
