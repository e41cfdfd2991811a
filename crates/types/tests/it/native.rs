//! Native records: when a payload may be seen as a slice of a Rust type.

use std::sync::Arc;

use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_types::{
    Binding, BindingError, Catalogue, EncodedValue, Fault, NativeRecord, StructType, ValueType,
};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::build::*;

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 2001)]
#[repr(C)]
struct Int4Block {
    #[record(array(Int4, 32))]
    codes: [u8; 16],
    scale: f32,
}

fn value(declaration: &Arc<StructType>, payload: Bytes) -> EncodedValue {
    let types = Catalogue::from_protos(&[declaration.to_proto()], None).unwrap();
    let proto = encoded(declaration.to_reference(), None, &[]);
    EncodedValue::from_proto(&proto, &types, payload).unwrap()
}

fn block(codes: DType, scale: DType, id: u64) -> Arc<StructType> {
    StructType::structure("Int4Block")
        .type_id(id)
        .array("codes", codes, 32)
        .field("scale", scale)
        .build()
        .unwrap()
}

// proves: D2, L5
#[test]
fn a_bound_type_sees_the_payload_in_place() {
    let payload = Bytes::from_vec([0x0403_0201u32, 0, 0, 0, 2f32.to_bits()].repeat(3));
    let value = value(&block(DType::Int4, DType::Float, 2001), payload.clone());
    let binding = Binding::<Int4Block>::new().unwrap();
    let view = binding.view(&value).unwrap();
    assert_eq!((view.len(), view.as_ptr().addr()), (3, payload.address()));
    assert_eq!((view[2].codes[3], view[2].scale), (4, 2.0));
    assert_eq!(binding.view(&EncodedValue { payload: Bytes::empty(), ..value }).unwrap().len(), 0);
}

// proves: D2, C6
#[test]
fn a_declaration_that_differs_is_refused_naming_the_field() {
    let payload = || Bytes::from_vec(vec![0u32; 5]);
    let other = value(&block(DType::Uint4, DType::Float, 2001), payload());
    let error = other.view::<Int4Block>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "type 2001 is declared differently than the native type expects: `codes[]`: UINT4[] instead of INT4[]"
    );
    let wrong_id = value(&block(DType::Int4, DType::Float, 2002), payload());
    assert!(matches!(wrong_id.view::<Int4Block>(), Err(BindingError::TypeId { expected: 2001, .. })));
    let inline = StructType::structure("")
        .array("codes", DType::Int4, 32)
        .field("scale", DType::Float)
        .build()
        .unwrap();
    let proto = encoded(inline.to_proto(), None, &[]);
    let inline = EncodedValue::from_proto(&proto, &Catalogue::new(), payload()).unwrap();
    assert_eq!(inline.view::<Int4Block>().err(), Some(BindingError::Inline { expected: 2001 }));
    let affine =
        affine_value(&affine(DType::Int8, &[], &[1.0], None, None), tensor(DType::Float, &[4]), &[0; 4]);
    let affine = EncodedValue::from_proto(&affine, &Catalogue::new(), bytes(&[0; 4])).unwrap();
    assert_eq!(affine.view::<Int4Block>().err(), Some(BindingError::Affine));
}

/// A record whose meaning depends on a constant that it does not hold.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 5)]
#[repr(C)]
struct Stepped {
    #[record(const step = Tensor::scalar(0.5f32))]
    code: i8,
}

// proves: D2, S3
#[test]
fn constants_are_part_of_what_is_bound() {
    let declared = |step: f32| {
        StructType::structure("")
            .type_id(5)
            .constant("step", Tensor::scalar(step))
            .field("code", DType::Int8)
            .build()
            .unwrap()
    };
    assert_eq!(value(&declared(0.5), bytes(&[3])).view::<Stepped>().unwrap()[0].code, 3);
    let error = value(&declared(0.25), bytes(&[3])).view::<Stepped>().err().unwrap();
    let BindingError::Declaration { id: 5, difference } = error else { panic!("{error}") };
    assert_eq!(difference.path, "step");
}

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Swapped {
    b: u16,
    a: u16,
}

impl NativeRecord for Swapped {
    const TYPE_ID: u64 = 6;

    fn declaration() -> Result<Arc<StructType>, Fault> {
        StructType::structure("").type_id(6).field("a", DType::Uint16).field("b", DType::Uint16).build()
    }

    fn offsets() -> Vec<(&'static str, usize)> {
        vec![("a", 2), ("b", 0)]
    }
}

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Forgetful {
    a: u16,
    b: u16,
}

impl NativeRecord for Forgetful {
    const TYPE_ID: u64 = 7;

    fn declaration() -> Result<Arc<StructType>, Fault> {
        StructType::structure("").type_id(7).field("a", DType::Uint16).field("b", DType::Uint16).build()
    }

    fn offsets() -> Vec<(&'static str, usize)> {
        vec![("a", 0)]
    }
}

// proves: L5
#[test]
fn a_rust_type_that_lies_otherwise_than_its_declaration_cannot_be_bound() {
    let error = Binding::<Swapped>::new().unwrap_err();
    assert_eq!(error, BindingError::Offset { field: "a".into(), record: 0, native: 2 });
    assert!(matches!(Binding::<Forgetful>::new(), Err(BindingError::Fields { .. })));
}

/// Each kind of field that can be declared.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = COMPLEX, name = "complex", const origin = Tensor::from_vec(&[2], vec![1i32, 2]).unwrap())]
#[repr(C)]
struct Complex {
    #[record(name = "parts")]
    nested: [Pair; 2],
    #[record(bits(low: 4, high: LOW; 3))]
    nibbles: [u8; 3],
    #[record(const bias = Tensor::scalar(-1i8), const gain = Tensor::scalar(2u8))]
    flag: u8,
    #[record(tensor(Float16, [2, 1]))]
    halves: [u16; 2],
    #[record(ty = ValueType::Struct(StructType::array("", ValueType::tensor(DType::Bool, &[]), 4).build()?))]
    bools: [u8; 4],
    count: u32,
}
const COMPLEX: u64 = 70_100;
const LOW: u32 = 4;

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 70_101)]
#[repr(C)]
struct Pair {
    first: half::f16,
    second: i16,
}

// proves: D2
#[test]
fn a_derived_declaration_has_every_field_constant_and_reference_in_order() {
    let pair = StructType::structure("Pair")
        .type_id(70_101)
        .field("first", DType::Float16)
        .field("second", DType::Int16)
        .build()
        .unwrap();
    let expected = StructType::structure("complex")
        .type_id(70_100)
        .nested_array("parts", &pair, 2)
        .bits("nibbles", &[("low", 4), ("high", 4)], 3)
        .constant("bias", Tensor::scalar(-1i8))
        .constant("gain", Tensor::scalar(2u8))
        .field("flag", DType::Uint8)
        .tensor("halves", DType::Float16, &[2, 1])
        .array("bools", DType::Bool, 4)
        .field("count", DType::Uint32)
        .constant("origin", Tensor::from_vec(&[2], vec![1i32, 2]).unwrap())
        .build()
        .unwrap();
    let derived = Complex::declaration().unwrap();
    assert_eq!(expected.difference(&derived), None);
    assert_eq!(
        (derived.name(), derived.type_id(), derived.record_bytes()),
        ("complex", expected.type_id(), Ok(24))
    );

    let types = Catalogue::from_protos(&[pair.to_proto(), expected.to_proto()], None).unwrap();
    let proto = encoded(expected.to_reference(), None, &[]);
    let payload = Bytes::from_vec(vec![0u64; 6]);
    let value = EncodedValue::from_proto(&proto, &types, payload.clone()).unwrap();
    let view = value.view::<Complex>().unwrap();
    assert_eq!((view.len(), view.as_ptr().addr()), (2, payload.address()));
}

// proves: D2
#[test]
fn the_first_field_that_differs_is_named_through_references() {
    let declared = |second: DType| {
        StructType::structure("")
            .type_id(70_101)
            .field("first", DType::Float16)
            .field("second", second)
            .build()
    };
    let outer = |pair: &Arc<StructType>| {
        StructType::structure("").type_id(70_102).field("head", DType::Int32).nested("pair", pair).build()
    };
    let ty = outer(&declared(DType::Uint16).unwrap()).unwrap();
    let types = Catalogue::from_protos(&[declared(DType::Uint16).unwrap().to_proto(), ty.to_proto()], None);
    let proto = encoded(ty.to_reference(), None, &[]);
    let value = EncodedValue::from_proto(&proto, &types.unwrap(), Bytes::from_vec(vec![0u64; 1])).unwrap();
    let error = value.view::<Outer>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "type 70102 is declared differently than the native type expects: `pair.second`: UINT16[] instead of INT16[]"
    );
}

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 70_102)]
#[repr(C)]
struct Outer {
    head: i32,
    pair: Pair,
}

// proves: L5, O2, O5
#[test]
fn refused_derivations_say_why() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
