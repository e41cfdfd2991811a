//! The worked examples of the value contract: affine values and payloads.

use heirloom_mem::{DType, Ledger, Tensor};
use heirloom_proto::{EncodedValueProto, StringStringEntryProto, TypeProto};
use heirloom_types::{
    Affine, AffineError, Catalogue, EncodedValue, StructType, TensorError, TypeError, ValueType,
};

use crate::build::*;

fn decoded(affine: &Affine, shape: &[usize], codes: &[u8]) -> Vec<f32> {
    let proto = affine_value(affine, tensor(DType::Float, shape), codes);
    let value = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(codes)).unwrap();
    value.decode(None, &Ledger::default()).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn refused(affine: &Affine, shape: &[usize], codes: &[u8]) -> TypeError {
    let proto = affine_value(affine, tensor(DType::Float, shape), codes);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(codes)).unwrap_err();
    faults.0[0].error.clone()
}

fn with_zero(mut affine: Affine, code: u8) -> Affine {
    affine.zero_point = Some(Tensor::new(affine.storage, &[], bytes(&[code])).unwrap());
    affine
}

// proves: A2, A6
#[test]
fn example_1_nibbles_come_low_first_and_the_spare_one_is_zero() {
    let int4 = affine(DType::Int4, &[], &[0.5], None, None);
    assert_eq!(decoded(&int4, &[5], &[0x21, 0x43, 0x05]), [0.5, 1.0, 1.5, 2.0, 2.5]);
    assert_eq!(decoded(&affine(DType::Int4, &[], &[1.0], None, None), &[2], &[0xf8]), [-8.0, -1.0]);
    let error = refused(&int4, &[5], &[0x21, 0x43, 0x75]);
    assert_eq!(error, TensorError::UnusedBits { dtype: DType::Int4, byte: 0x75 }.into());
}

// proves: A2, A5
#[test]
fn example_2_two_bit_codes_take_whole_bytes() {
    let [unsigned, signed] = [DType::Uint2, DType::Int2].map(|ty| affine(ty, &[], &[1.0], None, None));
    assert_eq!(decoded(&unsigned, &[5], &[0xe4, 0x01]), [0.0, 1.0, 2.0, 3.0, 1.0]);
    assert_eq!(decoded(&signed, &[5], &[0xe4, 0x01]), [0.0, 1.0, -2.0, -1.0, 1.0]);
    let error = refused(&unsigned, &[5], &[0xe4, 0x05]);
    assert!(matches!(error, TypeError::Tensor(TensorError::UnusedBits { .. })), "{error}");
    assert!(decoded(&unsigned, &[0], &[]).is_empty());
    assert_eq!(refused(&unsigned, &[5], &[0xe4]), TypeError::PayloadLength { expected: 2, actual: 1 });
    assert_eq!(refused(&unsigned, &[0], &[0]), TypeError::PayloadLength { expected: 0, actual: 1 });
}

// proves: A6
#[test]
fn example_3_zero_points_are_subtracted_without_wrapping() {
    let int4 = with_zero(affine(DType::Int4, &[], &[0.5], None, None), 7);
    assert_eq!(decoded(&int4, &[1], &[0x08]), [-7.5]);
    let uint8 = with_zero(affine(DType::Uint8, &[], &[0.5], None, None), 5);
    assert_eq!(decoded(&uint8, &[1], &[3]), [-1.0]);
}

// proves: A6
#[test]
fn example_4_rounding_is_half_even_and_products_are_of_the_logical_type() {
    let quantized = with_zero(affine(DType::Int8, &[], &[1.0], None, None), 1);
    let mut code = [0];
    quantized.encode(&logical(DType::Float, &[1]), &[2.5], &mut code).unwrap();
    assert_eq!(code, [3]);
    // Saturation comes after the zero point is added.
    quantized.encode(&logical(DType::Float, &[1]), &[127.0], &mut code).unwrap();
    assert_eq!(code, [127]);

    let scale = Tensor::scalar(half::f16::from_f32(0.1));
    let affine = Affine { storage: DType::Int8, scale, zero_point: None, axis: None, block_size: None };
    let mut out = [0.0];
    affine.decode_range(&logical(DType::Float16, &[1]), &[127], 0..1, &mut out).unwrap();
    assert_eq!(out.map(f64::from), [12.6953125]);
    affine.decode_range(&logical(DType::Float, &[1]), &[127], 0..1, &mut out).unwrap();
    assert_eq!(out.map(f64::from), [12.6968994140625]);
}

// proves: A4, A6
#[test]
fn example_5_a_byte_may_straddle_rows_and_no_axis_means_per_tensor() {
    let codes = [0x21, 0x43, 0x65];
    let rows = affine(DType::Int4, &[2], &[1.0, 10.0], Some(0), None);
    assert_eq!(decoded(&rows, &[2, 3], &codes), [1.0, 2.0, 3.0, 40.0, 50.0, 60.0]);
    let mut proto = affine_value(
        &affine(DType::Int4, &[3], &[1.0, 10.0, 100.0], Some(1), None),
        tensor(DType::Float, &[2, 3]),
        &codes,
    );
    proto.affine_mut().set_axis(-1);
    let value = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&codes)).unwrap();
    assert_eq!(value.layout.as_affine().unwrap().axis, Some(1));
    let decoded_value = value.decode(None, &Ledger::default()).unwrap();
    assert_eq!(decoded_value.as_slice::<f32>().unwrap(), [1.0, 20.0, 300.0, 4.0, 50.0, 600.0]);

    proto.affine_mut().clear_axis();
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&codes)).unwrap_err();
    assert!(matches!(faults.0[0].error, TypeError::Affine(AffineError::ScaleShape { .. })), "{faults}");
    proto.affine_mut().set_axis(-3);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&codes)).unwrap_err();
    assert_eq!(faults.0[0].error, AffineError::Axis { axis: -3, rank: 2 }.into());
}

// proves: A4
#[test]
fn example_6_the_last_block_may_be_partial() {
    let blocked = affine(DType::Int4, &[2, 2], &[1.0, 2.0, 3.0, 4.0], Some(1), Some(4));
    let expected = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0];
    assert_eq!(decoded(&blocked, &[2, 7], &[0x11; 7]), expected);
    let mut proto = affine_value(&blocked, tensor(DType::Float, &[2, 7]), &[0x11; 7]);
    proto.affine_mut().set_block_size(0);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&[0x11; 7])).unwrap_err();
    assert_eq!(faults.0[0].error, AffineError::BlockOfNothing.into());
}

// proves: A6
#[test]
fn example_17_ties_go_to_even_and_what_is_too_great_saturates() {
    let values = [0.5, 1.5, 2.5, 3.5, 1e30];
    for (ty, expected) in [(DType::Int4, [0x20, 0x42, 0x07]), (DType::Uint4, [0x20, 0x42, 0x0f])] {
        let mut codes = [0; 3];
        affine(ty, &[], &[1.0], None, None)
            .encode(&logical(DType::Float, &[5]), &values, &mut codes)
            .unwrap();
        assert_eq!(codes, expected);
    }
    let mut codes = [0; 3];
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let int8 = with_zero(affine(DType::Int8, &[], &[1.0], None, None), 5);
    int8.encode(&logical(DType::Float, &[3]), &special, &mut codes).unwrap();
    assert_eq!(codes, [5, 127, 0x80]);
}

// proves: E3, E4
#[test]
fn example_18_external_extents_are_checked() {
    let folder = std::env::temp_dir().join(format!("heirloom-types-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("w.bin"), [0x21, 0x43, 0x65, 0x87]).unwrap();
    let files = heirloom_proto::ExternalResolver::new(&folder).unwrap();
    let value = |entries: &[(&str, &str)]| {
        let mut proto = EncodedValueProto::new();
        proto.set_affine(affine(DType::Int4, &[], &[1.0], None, None).to_proto().unwrap());
        proto.set_logical_type(tensor(DType::Float, &[4]));
        proto.set_data_location(heirloom_proto::tensor_proto::DataLocation::EXTERNAL);
        for (key, value) in entries {
            let mut entry = StringStringEntryProto::new();
            entry.set_key(key);
            entry.set_value(value);
            proto.external_data_mut().push(entry);
        }
        proto
    };
    let load = |entries: &[(&str, &str)]| EncodedValue::load(&value(entries), &Catalogue::new(), &files);
    let loaded = load(&[("location", "w.bin"), ("offset", "1"), ("length", "2")]).unwrap();
    assert_eq!(loaded.payload[..], [0x43, 0x65]);
    assert_eq!(loaded.payload.kind(), heirloom_mem::RegionKind::Mapped);
    let huge = u64::MAX.to_string();
    for entries in [
        &[("location", "w.bin"), ("offset", "0")][..],
        &[("location", "w.bin"), ("length", "2"), ("length", "2")],
        &[("location", "../w.bin"), ("length", "2")],
        &[("location", "/w.bin"), ("length", "2")],
        &[("location", "w.bin"), ("offset", &huge), ("length", "2")],
        &[("location", "w.bin"), ("offset", "3"), ("length", "2")],
        &[("location", "w.bin"), ("length", "3")],
    ] {
        let faults = load(entries).unwrap_err();
        assert_eq!(faults.0.len(), 1, "{entries:?}: {faults}");
    }
    // What the message declares is judged without the file.
    let check = |entries: &[(&str, &str)]| EncodedValue::check(&value(entries), &Catalogue::new(), None, "v");
    assert_eq!(check(&[("location", "nowhere.bin"), ("length", "2")]), []);
    assert_eq!(check(&[("location", "nowhere.bin"), ("length", "3")]).len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

// proves: A5, E5
#[test]
fn logical_types_are_tensors_with_concrete_extents() {
    let layout = affine(DType::Int8, &[], &[1.0], None, None);
    let symbolic = ValueType::symbolic(DType::Float, ["n".into()]).to_proto();
    let faults = |logical: Option<TypeProto>| {
        let mut proto = affine_value(&layout, TypeProto::new(), &[1, 2]);
        proto.clear_logical_type();
        if let Some(logical) = logical {
            proto.set_logical_type(logical);
        }
        EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&[1, 2])).unwrap_err().to_string()
    };
    assert!(faults(Some(symbolic)).contains("concrete extents"));
    assert!(
        faults(Some(ValueType::sequence(ValueType::unranked(DType::Float)).to_proto()))
            .contains("must be a tensor")
    );
    assert!(faults(None).contains("needs a logical type"));
    assert!(faults(Some(tensor(DType::Double, &[2]))).contains("not DOUBLE"));
    // A struct of records needs none.
    let ty = StructType::structure("").field("x", DType::Int8).build().unwrap();
    let value = EncodedValue::from_proto(&encoded(ty.to_proto(), None, &[1]), &Catalogue::new(), bytes(&[1]));
    assert_eq!(value.unwrap().logical, None);
}

// proves: L1, A5
#[test]
fn example_9_sizes_of_payloads_do_not_wrap() {
    let many = (1usize << 62) - 1;
    let int4 = affine(DType::Int4, &[], &[1.0], None, None);
    let expected = 2_305_843_009_213_693_952;
    assert_eq!(int4.payload_bytes(many), Some(expected as usize));
    assert_eq!(refused(&int4, &[many], &[]), TypeError::PayloadLength { expected, actual: 0 });
}
