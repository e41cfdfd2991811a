//! What every format must do.

use std::collections::HashSet;

use heirloom_formats::{FAMILIES, FORMATS, by_gguf_type, by_name, codec, recognize};
use heirloom_types::{Catalogue, Codec, CodecError, StructLayout};

use crate::random::Random;
use crate::subject::{Subject, subjects};

impl Subject {
    /// Values for about `at_least` elements, in whole records.
    fn room(&self, at_least: usize) -> usize {
        self.codec.elements() * at_least.div_ceil(self.codec.elements())
    }

    fn decode(&self, records: &[u8]) -> Result<Vec<f32>, CodecError> {
        let mut values = vec![0.0; records.len() / self.codec.record_bytes() * self.codec.elements()];
        self.codec.decode(records, &mut values)?;
        Ok(values)
    }

    fn encode(&self, values: &[f32]) -> Vec<u8> {
        let mut records = vec![0xAA; values.len() / self.codec.elements() * self.codec.record_bytes()];
        self.codec.encode(values, &mut records).unwrap();
        records
    }

    fn encoded_normals(&self, records: usize) -> Vec<u8> {
        self.encode(&Random(5).normal(records * self.codec.elements()))
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

// proves: D4, L1
#[test]
fn a_record_has_the_size_of_its_declared_layout() {
    for subject in subjects() {
        let layout = StructLayout::new(subject.declaration.clone()).unwrap();
        assert_eq!(layout.record_bytes, subject.codec.record_bytes(), "`{}`", subject.name);
        assert!(subject.declaration.decoder().is_some());
    }
}

// proves: C1, C6
#[test]
fn identities_names_and_gguf_numbers_are_unique() {
    let names: HashSet<_> = FORMATS.iter().map(|f| f.name).chain(FAMILIES.iter().map(|f| f.name)).collect();
    assert_eq!(names.len(), FORMATS.len() + FAMILIES.len());
    let all = subjects();
    let with_identity = all.iter().filter_map(|subject| subject.declaration.type_id());
    let ids: HashSet<_> = with_identity.clone().collect();
    assert_eq!(ids.len(), with_identity.count());
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
    for subject in subjects() {
        let Some(bound) = subject.largest_relative_error else { continue };
        let mut random = Random(7);
        for scale in [1e-3, 0.05, 1.0, 300.0] {
            let values: Vec<f32> = random.normal(subject.room(8192)).iter().map(|v| v * scale).collect();
            let decoded = subject.decode(&subject.encode(&values)).unwrap();
            let square =
                |pairs: &mut dyn Iterator<Item = f32>| pairs.map(|v| f64::from(v).powi(2)).sum::<f64>();
            let error = square(&mut values.iter().zip(&decoded).map(|(a, b)| a - b));
            let relative = (error / square(&mut values.iter().copied())).sqrt();
            assert!(relative <= bound, "`{}` at scale {scale} loses {relative}, bound {bound}", subject.name);
        }
    }
}

#[test]
fn zeros_survive_encoding() {
    for subject in subjects().iter().filter(|subject| !subject.name.starts_with("codebook")) {
        let zeros = vec![0.0; 4 * subject.codec.elements()];
        let decoded = subject.decode(&subject.encode(&zeros)).unwrap();
        assert!(decoded.iter().all(|&v| v == 0.0), "`{}`", subject.name);
    }
}

#[test]
fn values_that_are_no_numbers_are_refused_with_their_place() {
    for subject in subjects() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![1.0; 2 * subject.codec.elements()];
            let index = subject.codec.elements();
            values[index] = bad;
            let mut records = vec![0; 2 * subject.codec.record_bytes()];
            let error = subject.codec.encode(&values, &mut records).unwrap_err();
            assert!(matches!(error, CodecError::Value { index: i, .. } if i == index), "{error}");
        }
    }
}

#[test]
fn values_whose_scale_cannot_be_stored_are_refused_rather_than_turned_into_infinities() {
    for subject in subjects() {
        let mut values = Random(2).normal(2 * subject.codec.elements());
        let index = subject.codec.elements();
        values[index] = 3.0e38;
        let mut records = vec![0; 2 * subject.codec.record_bytes()];
        match subject.codec.encode(&values, &mut records) {
            Ok(()) => {
                assert!(subject.decode(&records).unwrap().iter().all(|v| v.is_finite()), "`{}`", subject.name)
            }
            Err(error) => {
                assert!(
                    matches!(error, CodecError::Value { index: i, .. } if i == index),
                    "`{}`: {error}",
                    subject.name
                );
            }
        }
    }
    let q8_0 = by_name("q8_0").unwrap();
    let mut values = [0.5; 32];
    values[9] = -1e9;
    assert!(q8_0.encode(&values, &mut [0; 34]).is_err());
}

// proves: E1
#[test]
fn partial_records_and_wrong_lengths_are_refused() {
    for Subject { codec, .. } in subjects() {
        let (bytes, elements) = (codec.record_bytes(), codec.elements());
        let mut values = vec![0.0; 2 * elements];
        let records = vec![0; 2 * bytes];
        for cut in [1, bytes - 1, bytes + 1] {
            let error = codec.decode(&records[..cut], &mut values).unwrap_err();
            assert_eq!(error, CodecError::PartialRecord { bytes: cut, record_bytes: bytes });
        }
        let error = codec.decode(&records, &mut values[1..]).unwrap_err();
        assert_eq!(error, CodecError::Elements { expected: 2 * elements, actual: 2 * elements - 1 });
        codec.decode(&[], &mut []).unwrap();
        assert!(codec.encode(&values[1..], &mut records.clone()).is_err());
    }
}

// proves: L5
#[test]
fn any_bytes_decode_without_a_panic_and_without_looking_at_their_neighbours() {
    for subject in subjects() {
        let records = Random(99).bytes(16 * subject.codec.record_bytes());
        match subject.decode(&records) {
            Ok(all) => {
                let records = records.chunks(subject.codec.record_bytes());
                for (record, values) in records.zip(all.chunks(subject.codec.elements())) {
                    assert_eq!(bits(&subject.decode(record).unwrap()), bits(values), "`{}`", subject.name);
                }
            }
            // Indices beyond a table are all that a record can have wrong.
            Err(error) => {
                assert!(matches!(error, CodecError::Malformed { .. }), "`{}`: {error}", subject.name)
            }
        }
    }
}

#[test]
fn a_range_may_begin_and_end_within_records() {
    for subject in subjects() {
        let records = subject.encoded_normals(3);
        let all = subject.decode(&records).unwrap();
        let elements = subject.codec.elements();
        let ends = [(0, 1), (elements / 2, all.len() - 1), (elements - 1, elements), (all.len(), all.len())];
        for (first, last) in ends {
            let mut part = vec![0.0; last - first];
            subject.codec.decode_range(&records, first, &mut part).unwrap();
            assert_eq!(bits(&part), bits(&all[first..last]), "`{}`", subject.name);
        }
        let mut two = [0.0; 2];
        assert!(subject.codec.decode_range(&records, all.len() - 1, &mut two).is_err());
        assert!(subject.codec.decode_range(&records, usize::MAX, &mut two).is_err());
    }
}

// proves: D2
#[test]
fn a_layout_is_recognized_by_identity_and_declaration_together() {
    for format in FORMATS {
        let layout = StructLayout::new(format.declaration().clone()).unwrap();
        assert_eq!(recognize(&layout).unwrap().name, format.name);
        let other = FORMATS.iter().find(|f| f.type_id != format.type_id).unwrap();
        let other_layout = StructLayout::new(other.declaration().clone()).unwrap();
        let stolen = StructLayout { type_id: Some(format.type_id), ..other_layout };
        assert!(recognize(&stolen).is_none(), "`{}` claimed by `{}`", format.name, other.name);
        let anonymous = StructLayout { type_id: None, ..layout };
        assert!(recognize(&anonymous).is_none());
    }
}

// proves: C2, C6, D2
#[test]
fn each_declaration_is_recognized_after_a_round_trip_in_any_catalogue_order() {
    let all: Vec<Subject> =
        subjects().into_iter().filter(|subject| subject.declaration.type_id().is_some()).collect();
    let mut protos: Vec<_> = all.iter().map(|subject| subject.declaration.to_proto()).collect();
    for _ in 0..2 {
        let catalogue = Catalogue::from_protos(&protos, None).unwrap();
        for subject in &all {
            let read = catalogue.get(subject.declaration.type_id().unwrap().get()).unwrap();
            let layout = StructLayout::new(read.clone()).unwrap();
            let found = codec(&layout).unwrap_or_else(|| panic!("`{}` is recognized", subject.name));
            let records = subject.encoded_normals(2);
            let mut values = vec![0.0; 2 * found.elements()];
            found.decode(&records, &mut values).unwrap();
            assert_eq!(bits(&values), bits(&subject.decode(&records).unwrap()), "`{}`", subject.name);
        }
        protos.reverse();
    }
}

#[test]
fn an_inline_declaration_of_a_family_is_recognized() {
    for family in FAMILIES {
        for shaped in (family.examples)() {
            let layout = StructLayout::new(shaped.declaration(None)).unwrap();
            let found = codec(&layout).unwrap_or_else(|| panic!("`{}` is recognized", family.name));
            assert_eq!(found.elements(), shaped.elements());
            let values = Random(11).normal(shaped.elements());
            let mut records = [vec![0; shaped.record_bytes()], vec![0; shaped.record_bytes()]];
            shaped.encode(&values, &mut records[0]).unwrap();
            found.encode(&values, &mut records[1]).unwrap();
            assert_eq!(records[0], records[1], "`{}`", family.name);
        }
    }
}
