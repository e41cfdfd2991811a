//! Every format and family through the runtime: its in-file decoder and its native codec agree to the bit.

use std::sync::Arc;

use heirloom::formats::{FAMILIES, FORMATS};
use heirloom::mem::Ledger;
use heirloom::runtime::{DecodeOptions, DecodeSource, DecodedBy, decode};
use heirloom::types::{Codec, StructType};

use crate::values::{Random, elements, encoded, registry};

/// Any records at all where the format can read them, else records that its encoder wrote.
fn records(codec: &dyn Codec, count: usize, random: &mut Random) -> Vec<u8> {
    let mut records = random.bytes(count * codec.record_bytes());
    let mut values = vec![0.0; count * codec.elements()];
    if codec.decode(&records, &mut values).is_err() {
        let inputs = random.normals(values.len());
        codec.encode(&inputs, &mut records).unwrap();
    }
    records
}

fn assert_both_agree(name: &str, declaration: &Arc<StructType>, codec: &dyn Codec, records: Vec<u8>) {
    let count = records.len() / codec.record_bytes();
    let mut expected = vec![f32::NAN; count * codec.elements()];
    codec.decode(&records, &mut expected).unwrap();
    let value = encoded(name, declaration, records, &[count, codec.elements()]);
    for (source, by) in [(DecodeSource::File, DecodedBy::File), (DecodeSource::Any, DecodedBy::Codec)] {
        let options = DecodeOptions { source, ..DecodeOptions::default() };
        let ledger = Ledger::default();
        let (tensor, decoded_by) =
            decode(&value, &registry(), &options, &ledger).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded_by, by, "{name}");
        assert_eq!(ledger.counts().decoder_runs, u64::from(by == DecodedBy::File));
        assert_eq!(tensor.shape(), [count, codec.elements()]);
        for (i, (a, e)) in elements::<f32>(&tensor).iter().zip(&expected).enumerate() {
            // NaN payloads are not part of the value.
            let same = a.to_bits() == e.to_bits() || (a.is_nan() && e.is_nan());
            assert!(same, "{name}, {by:?}, element {i}: {a} instead of {e}");
        }
    }
}

/// Bytes that nobody would write: infinite and NaN scales, extreme codes, indices beyond tables. Both ways refuse them,
/// or give the same.
fn assert_both_agree_on_hostile_bytes(name: &str, declaration: &Arc<StructType>, codec: &dyn Codec) {
    for byte in [0x00, 0x55, 0x7c, 0x7f, 0x80, 0xaa, 0xfc, 0xff] {
        let records = vec![byte; 2 * codec.record_bytes()];
        let mut values = vec![0.0; 2 * codec.elements()];
        if codec.decode(&records, &mut values).is_ok() {
            assert_both_agree(name, declaration, codec, records);
            continue;
        }
        let value = encoded(name, declaration, records, &[2, codec.elements()]);
        for source in [DecodeSource::File, DecodeSource::Codec] {
            let options = DecodeOptions { source, ..DecodeOptions::default() };
            let decoded = decode(&value, &registry(), &options, &Ledger::default());
            assert!(decoded.is_err(), "{name}: bytes {byte:#x} by {source:?}");
        }
    }
}

// proves: D3, D4, E5
#[test]
fn every_formats_in_file_decoder_equals_its_codec_to_the_bit() {
    let mut random = Random(3);
    for &format in FORMATS {
        for count in [0, 1, 37] {
            let records = records(format, count, &mut random);
            assert_both_agree(format.name, format.declaration(), format, records);
        }
        assert_both_agree_on_hostile_bytes(format.name, format.declaration(), format);
    }
}

// proves: D3, D4, E5
#[test]
fn every_familys_in_file_decoder_equals_its_codec_to_the_bit() {
    let mut random = Random(4);
    for family in FAMILIES {
        for (at, shaped) in (family.examples)().into_iter().enumerate() {
            for (id, count) in [(None, 0), (None, 3), (shaped.type_id(), 2)] {
                let records = records(&*shaped, count, &mut random);
                let name = format!("{}[{at}]", family.name);
                assert_both_agree(&name, &shaped.declaration(id), &*shaped, records);
            }
            assert_both_agree_on_hostile_bytes(family.name, &shaped.declaration(None), &*shaped);
        }
    }
}
