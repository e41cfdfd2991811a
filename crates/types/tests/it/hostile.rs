//! Bytes of any kind never panic, hang or take memory that they merely claim.

use heirloom_mem::{DType, Ledger, Tensor};
use heirloom_proto::{EncodedValueProto, StructTypeProto, TensorProto};
use heirloom_types::{Catalogue, EncodedValue, StructLayout, ValueType, tensor_to_proto, value_from_proto};
use proptest::prelude::*;

use crate::build::*;

/// Messages that use every part of the format.
fn declarations() -> Vec<Vec<u8>> {
    let table = Tensor::from_vec(&[4], vec![-1.0f32, -0.25, 0.25, 1.0]).unwrap();
    let sequence = ValueType::sequence(ValueType::map(DType::String, ValueType::AnyStruct)).to_proto();
    [
        declared(
            1,
            structure(vec![field("c", nested(packing(&[("i", 2), ("j", 6)], 4))), constant("t", &table)]),
        ),
        declared(
            2,
            structure(vec![field("a", nested(reference(1))), field("s", tensor(DType::Float, &[2, 3]))]),
        ),
        declared(3, array(nested(reference(2)), 3)),
        declared(4, structure(vec![field("q", sequence), field("o", nested(reference(3)))])),
    ]
    .into_iter()
    .map(|proto| proto.to_bytes().to_vec())
    .collect()
}

/// Changes some bytes, cuts some off, or repeats some.
fn mutated(data: &[u8], changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    let mut data = data.to_vec();
    for (at, byte) in changes {
        let len = data.len().max(1);
        if let Some(place) = data.get_mut(at % len) {
            *place = *byte;
        }
    }
    data.truncate(data.len().saturating_sub(cut));
    data
}

/// Everything that can be asked of a catalogue.
fn use_all(types: &Catalogue) {
    for ty in types.iter() {
        let _ = (ty.record_bytes(), ty.contains_strings(), format!("{ty:?}"), ty.to_proto().encoded_len());
        let slots = ty.slots(200);
        let Ok(layout) = StructLayout::new(ty.clone()) else { continue };
        if layout.record_bytes > 1 << 16 {
            continue;
        }
        let payload = bytes(&vec![0xa5; layout.record_bytes * 2]);
        let records = layout.records(&payload).unwrap();
        for slot in slots.into_iter().flatten() {
            if slot.elements().is_some_and(|n| n < 1 << 16) {
                assert!(records.column(&slot, &Ledger::default()).is_ok(), "{slot:?}");
            }
            for record in records.iter() {
                for element in record.read(&slot).iter().take(50) {
                    let _ = (element.as_f64(), element.as_i64(), element.as_complex());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // proves: S5, L5
    #[test]
    fn damaged_declarations_are_faults_or_types_but_never_a_panic(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut in 0usize..4,
        which in 0usize..4,
    ) {
        let mut protos = Vec::new();
        for (i, data) in declarations().iter().enumerate() {
            let data = if i == which { mutated(data, &changes, cut) } else { data.clone() };
            protos.extend(StructTypeProto::decode(bytes(&data)).ok());
        }
        let (types, faults) = Catalogue::read(&protos, None);
        prop_assert!(types.len() + faults.len() > 0);
        for fault in &faults {
            prop_assert!(!fault.to_string().is_empty());
        }
        use_all(&types);
    }

    // proves: E4, L5
    #[test]
    fn damaged_encoded_values_are_faults_or_values_but_never_a_panic(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..5),
        cut in 0usize..3,
        blocked in any::<bool>(),
    ) {
        let protos: Vec<StructTypeProto> =
            declarations().iter().map(|data| StructTypeProto::decode(bytes(data)).unwrap()).collect();
        let types = Catalogue::from_protos(&protos, None).unwrap();
        let mut layout = affine(DType::Int4, &[2, 2], &[0.5; 4], Some(1), Some(2));
        layout.zero_point = Some(Tensor::new(DType::Int4, &[2, 2], bytes(&[0x21, 0x43])).unwrap());
        let value = if blocked {
            affine_value(&layout, tensor(DType::Float, &[2, 3]), &[1, 2, 3])
        } else {
            encoded(reference(3), Some(tensor(DType::Float, &[2, 3])), &[0xee; 28 * 3 * 2])
        };
        let data = mutated(&value.to_bytes(), &changes, cut);
        let Ok(proto) = EncodedValueProto::decode(bytes(&data)) else { return Ok(()) };
        let faults = EncodedValue::check(&proto, &types, None, "v");
        let payload = proto.raw_data().cloned().unwrap_or_default();
        let loaded = EncodedValue::from_proto(&proto, &types, payload);
        if proto.payload().is_ok() && proto.external_data().is_empty() {
            prop_assert_eq!(loaded.is_ok(), faults.is_empty(), "{:?} {:?}", faults, loaded);
        }
        if let Ok(value) = loaded {
            let _ = (value.record_count(), value.to_proto().map(|proto| proto.encoded_len()));
            if value.layout.as_affine().is_some() {
                let out = value.decode(None, &Ledger::default()).unwrap();
                let logical = value.logical.as_ref().unwrap();
                prop_assert_eq!((out.dtype(), out.shape()), (logical.dtype, &logical.shape[..]));
            }
        }
    }

    // proves: W4
    #[test]
    fn damaged_tensors_are_errors_or_tensors_but_never_a_panic(
        number in 0i32..30,
        dims in proptest::collection::vec(prop_oneof![-1i64..5, Just(i64::MAX), Just(1i64 << 40)], 0..4),
        raw in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
        entries in proptest::collection::vec(any::<i32>(), 0..6),
    ) {
        let mut proto = TensorProto::new();
        proto.set_data_type(number);
        proto.dims_mut().extend(dims);
        if let Some(raw) = raw {
            proto.set_raw_data(bytes(&raw));
        }
        proto.int32_data_mut().extend(entries);
        if let Ok(heirloom_types::Value::Tensor(tensor)) = value_from_proto(&proto, None) {
            let again = tensor_to_proto(&tensor, "").unwrap();
            prop_assert_eq!(again.dims(), proto.dims());
            prop_assert_eq!(tensor.byte_len(), again.raw_data().unwrap().len());
        }
    }
}
