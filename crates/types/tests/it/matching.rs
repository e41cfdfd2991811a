//! Values against declared types: symbols, fields, kinds; and what values say of themselves.

use std::sync::Arc;

use heirloom_mem::{Bytes, DType, RegionKind, Tensor};
use heirloom_types::{
    Catalogue, Dim, DimBindings, EncodedValue, MapKey, Mismatch, StringTensor, StructType, StructValue,
    Value, ValueType,
};

use crate::build::*;

fn floats(shape: &[usize]) -> Value {
    Tensor::from_vec(shape, vec![0f32; shape.iter().product()]).unwrap().into()
}

fn structure_value(fields: Vec<(&str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (Arc::from(name), value)).collect();
    Value::Struct(Arc::new(StructValue { fields }))
}

fn strings() -> Value {
    Value::Strings(Arc::new(StringTensor { shape: Default::default(), elements: vec![b"x"[..].into()] }))
}

// proves: R3
#[test]
fn symbols_stand_for_one_extent_across_values() {
    let ty = ValueType::symbolic(DType::Float, ["batch".into(), Dim::Unknown, 4.into()]);
    let mut dims = DimBindings::new();
    ty.check(&floats(&[2, 7, 4]), "past_key", &mut dims).unwrap();
    ty.check(&floats(&[2, 0, 4]), "past_value", &mut dims).unwrap();
    assert_eq!((dims.get("batch"), dims.get("other"), dims.iter().count()), (Some(2), None, 1));
    let error = ty.check(&floats(&[3, 7, 4]), "mask", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "axis 0 of `mask` is 3, but `batch` is 2 by axis 0 of `past_key`");
    let error = ty.check(&floats(&[2, 7, 5]), "x", &mut dims).unwrap_err();
    assert_eq!(error, Mismatch::Extent { path: "x".into(), axis: 2, expected: 4, actual: 5 });
    assert!(matches!(ty.check(&floats(&[2, 7]), "x", &mut dims), Err(Mismatch::Rank { .. })));
    let ints = Value::from(Tensor::from_vec(&[2, 1, 4], vec![0i32; 8]).unwrap());
    assert!(matches!(ty.check(&ints, "x", &mut dims), Err(Mismatch::ElementType { .. })));
    let error = ty.check(&strings(), "x", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "`x` holds STRING, where FLOAT is declared");
    let error = ty.check(&Value::Optional(None), "x", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "`x` is a optional, where FLOAT[batch, ?, 4] is declared");
    ValueType::unranked(DType::Float).check(&floats(&[1, 2, 3]), "x", &mut dims).unwrap();
}

// proves: S1, R3
#[test]
fn structs_are_checked_field_by_field() {
    let cache = StructType::structure("Cache")
        .typed("keys", ValueType::symbolic(DType::Float, ["n".into()]))
        .typed("blocks", ValueType::sequence(ValueType::symbolic(DType::Float, ["n".into()])))
        .field("length", DType::Int64)
        .constant("version", Tensor::scalar(1i32))
        .build()
        .unwrap();
    let ty = ValueType::Struct(cache);
    let value = |n: usize, m: usize| {
        let blocks = Value::Sequence(Arc::new(vec![floats(&[n]), floats(&[m])]));
        structure_value(vec![
            ("keys", floats(&[n])),
            ("blocks", blocks),
            ("length", Tensor::scalar(3i64).into()),
        ])
    };
    ty.check(&value(2, 2), "cache", &mut DimBindings::new()).unwrap();
    let error = ty.check(&value(2, 3), "cache", &mut DimBindings::new()).unwrap_err();
    assert_eq!(error.to_string(), "axis 0 of `cache.blocks[1]` is 3, but `n` is 2 by axis 0 of `cache.keys`");
    let missing = structure_value(vec![("keys", floats(&[2]))]);
    let error = ty.check(&missing, "cache", &mut DimBindings::new()).unwrap_err();
    assert_eq!(error, Mismatch::MissingField { path: "cache".into(), field: "blocks".into() });
    let Value::Struct(fields) = value(1, 1) else { panic!() };
    let mut more = fields.fields.clone();
    more.push(("version".into(), Tensor::scalar(1i32).into()));
    let more = Value::Struct(Arc::new(StructValue { fields: more }));
    let error = ty.check(&more, "cache", &mut DimBindings::new()).unwrap_err();
    assert_eq!(error, Mismatch::UnknownField { path: "cache".into(), field: "version".into() });
}

// proves: E6, G1
#[test]
fn encoded_values_fit_their_struct_type_any_struct_and_on_request_their_tensor() {
    let block = |id| StructType::structure("B").type_id(id).array("codes", DType::Uint8, 4).build().unwrap();
    let value = |id: u64| {
        let types = Catalogue::from_protos(&[block(id).to_proto()], None).unwrap();
        let proto = encoded(reference(id), Some(tensor(DType::Float, &[4])), &[0; 4]);
        Value::Encoded(EncodedValue::from_proto(&proto, &types, bytes(&[0; 4])).unwrap().into())
    };
    let mut dims = DimBindings::new();
    ValueType::Struct(block(1)).check(&value(1), "v", &mut dims).unwrap();
    let error = ValueType::Struct(block(2)).check(&value(1), "v", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "`v` holds records of struct `B` (1), where struct `B` (2) is declared");
    let mixed =
        Value::Sequence(Arc::new(vec![value(1), structure_value(vec![("x", floats(&[]))]), value(2)]));
    ValueType::sequence(ValueType::AnyStruct).check(&mixed, "v", &mut dims).unwrap();
    let dense = ValueType::symbolic(DType::Float, ["n".into()]);
    let error = dense.check(&value(1), "v", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "`v` is a encoded value (struct `B` (1)), where FLOAT[n] is declared");
    dense.check_logical(&value(1), "v", &mut dims).unwrap();
    assert_eq!(dims.get("n"), Some(4));
}

#[test]
fn maps_and_optionals_are_checked_inside() {
    let ty = ValueType::map(DType::Int64, ValueType::optional(ValueType::tensor(DType::Float, &[1])));
    let entry = |key, value| Value::Map(Arc::new(vec![(key, Value::Optional(value))]));
    let mut dims = DimBindings::new();
    ty.check(&entry(MapKey::Int(1), None), "m", &mut dims).unwrap();
    ty.check(&entry(MapKey::Int(1), Some(Arc::new(floats(&[1])))), "m", &mut dims).unwrap();
    let error = ty.check(&entry(MapKey::Int(7), Some(Arc::new(floats(&[2])))), "m", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "axis 0 of `m[7]` is 2, where 1 is declared");
    let error = ty.check(&entry(MapKey::String("k".into()), None), "m", &mut dims).unwrap_err();
    assert_eq!(error.to_string(), "`m` has the key \"k\", where INT64 keys are declared");
}

// proves: B2, R3
#[test]
fn strings_are_found_wherever_they_hide_in_a_value() {
    let hidden = [
        strings(),
        structure_value(vec![("a", floats(&[1])), ("b", strings())]),
        Value::Sequence(Arc::new(vec![floats(&[1]), strings()])),
        Value::Optional(Some(Arc::new(strings()))),
        Value::Map(Arc::new(vec![(MapKey::Int(1), strings())])),
        Value::Map(Arc::new(vec![(MapKey::String("k".into()), floats(&[1]))])),
    ];
    assert!(hidden.iter().all(Value::contains_strings));
    assert!(!structure_value(vec![("a", floats(&[1]))]).contains_strings());
    assert!(!Value::Optional(None).contains_strings());
}

#[test]
fn values_tell_their_type() {
    let show = |value: &Value| value.value_type().to_string();
    assert_eq!(show(&floats(&[2, 3])), "FLOAT[2, 3]");
    assert_eq!(show(&strings()), "STRING[]");
    assert_eq!(show(&Value::Sequence(Arc::new(vec![floats(&[1]), floats(&[1])]))), "sequence of FLOAT[1]");
    assert_eq!(show(&Value::Sequence(Arc::new(vec![floats(&[1]), floats(&[2])]))), "sequence of any struct");
    assert_eq!(show(&Value::Map(Arc::new(vec![(MapKey::Int(1), floats(&[]))]))), "map from INT64 to FLOAT[]");
    let value = structure_value(vec![("a", floats(&[2]))]);
    value.value_type().check(&value, "v", &mut DimBindings::new()).unwrap();
}

// proves: O1
#[test]
fn payloads_are_listed_with_their_region_and_address() {
    let memory = Bytes::from_vec(vec![1u8; 8]);
    let tensor_value = Tensor::new(DType::Uint8, &[8], memory.clone()).unwrap();
    let layout = affine(DType::Int8, &[], &[1.0], None, None);
    let proto = affine_value(&layout, tensor(DType::Float, &[4]), &[0; 4]);
    let affine = EncodedValue::from_proto(&proto, &Catalogue::new(), memory.slice(2..6)).unwrap();
    let value = structure_value(vec![
        ("dense", tensor_value.into()),
        ("text", strings()),
        ("blocks", Value::Sequence(Arc::new(vec![Value::Encoded(affine.into())]))),
    ]);
    let mut parts = Vec::new();
    value.for_each_payload(&mut |part| {
        let shared = part.region == memory.region_id();
        parts.push((part.path.to_owned(), part.bytes, shared.then(|| part.address - memory.address())));
        assert!(matches!(part.kind, RegionKind::Foreign | RegionKind::Heap));
    });
    assert_eq!(
        parts,
        [
            ("dense".to_owned(), 8, Some(0)),
            ("blocks[0]".to_owned(), 4, Some(2)),
            ("blocks[0].scale".to_owned(), 4, None),
        ]
    );
    assert_eq!(value.payload_bytes(), 16);
}
