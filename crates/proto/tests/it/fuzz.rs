//! No bytes make the wire layer panic, and what it takes it gives back.

use heirloom_mem::Bytes;
use heirloom_proto::{GraphProto, ModelProto, for_each_message};
use proptest::prelude::*;

use crate::model::{field, full_model};

/// Decodes as every message; what is taken must come back as it was, and mean the same encoded anew.
fn try_every_message(bytes: &[u8]) {
    macro_rules! message {
        ($message:ty) => {
            let input = Bytes::from_vec(bytes.to_vec());
            if let Ok(message) = <$message>::decode(input.clone()) {
                assert_eq!(message.to_bytes(), input);
                assert_eq!(message.encoded_len(), bytes.len() as u64);
                let anew = message.to_canonical_bytes();
                let again = <$message>::decode(anew.clone()).expect("what was written can be read");
                assert_eq!(again.to_canonical_bytes(), anew);
                assert_eq!(again.unknown_fields(), message.unknown_fields());
                assert!(!format!("{message:?}").is_empty());
                assert_eq!(message.find_invalid_utf8(), again.find_invalid_utf8());
            }
        };
    }
    for_each_message!(message);
}

/// Bytes that look like fields, a few levels deep.
fn fields() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![4 => 1u64..27, 1 => 1000u64..1003, 1 => 1u64..100_000];
    let scalar = (number.clone(), prop_oneof![Just(0u64), Just(1), Just(2), Just(5)], any::<[u8; 8]>());
    let leaf = scalar.prop_map(|(number, wire_type, bytes)| match wire_type {
        0 => field(number, 0, &[bytes[0] | 0x80, bytes[1] & 0x7f]),
        1 => field(number, 1, &bytes),
        2 => field(number, 2, &bytes[..usize::from(bytes[7] % 8)]),
        _ => field(number, 5, &bytes[..4]),
    });
    leaf.prop_recursive(5, 64, 6, move |inner| {
        (number.clone(), prop::collection::vec(inner, 0..6))
            .prop_map(|(number, fields)| field(number, 2, &fields.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        try_every_message(&bytes);
    }

    #[test]
    fn arbitrary_fields_come_back_as_they_were(fields in prop::collection::vec(fields(), 0..12)) {
        try_every_message(&fields.concat());
    }

    #[test]
    fn a_damaged_model_never_panics(at in 0usize..10_000, byte: u8, cut in 0usize..10_000) {
        let mut bytes = full_model().to_bytes().to_vec();
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length - cut % length.min(200));
        if let Ok(model) = ModelProto::decode(Bytes::from_vec(bytes.clone())) {
            prop_assert_eq!(&*model.to_bytes(), &bytes[..]);
            // A refusal is fine; a panic is not.
            drop(heirloom_proto::check_payloads(&model));
        }
    }

    #[test]
    fn touching_one_message_keeps_every_other(fields in prop::collection::vec(fields(), 0..12)) {
        let bytes = Bytes::from_vec(fields.concat());
        if let Ok(mut graph) = GraphProto::decode(bytes) {
            let before = graph.clone();
            graph.set_name("touched");
            let mut back = GraphProto::decode(graph.to_bytes()).expect("what was written can be read");
            prop_assert_eq!(back.name(), "touched");
            prop_assert_eq!(back.node(), before.node());
            if before.has_name() { back.set_name(before.name()) } else { back.clear_name() }
            if std::str::from_utf8(before.name_bytes()).is_ok() {
                prop_assert_eq!(back.to_canonical_bytes(), before.to_canonical_bytes());
            }
        }
    }
}
