//! Types and encoded values through their messages and back.

use heirloom_mem::{DType, Tensor};
use heirloom_proto::{EncodedValueProto, FunctionProto, StructTypeProto};
use heirloom_types::{Catalogue, EncodedValue, StructType, ValueType};

use crate::build::*;

// proves: GB1, W3
#[test]
fn a_declaration_that_was_read_is_written_as_it_was() {
    let mut proto = structure(vec![field("v", tensor(DType::Int8, &[2]))]);
    proto.set_name("Noted");
    proto.set_doc_string("text");
    proto.structure_mut().field_mut()[0].set_doc_string("about v");
    let mut data = declared(9, proto).to_bytes().to_vec();
    // An unknown field, 777 = 1.
    data.extend([0xc8, 0x30, 0x01]);
    let proto = StructTypeProto::decode(bytes(&data)).unwrap();
    let types = Catalogue::from_protos(&[proto], None).unwrap();
    assert_eq!(types.to_protos()[0].to_bytes()[..], data);
}

// proves: S1, C3
#[test]
fn a_declaration_written_in_rust_is_read_back_equal() {
    let mut decoder = FunctionProto::new();
    decoder.set_name("Decode");
    let inner = StructType::structure("Inner")
        .type_id(1)
        .bits("codes", &[("lo", 3), ("hi", 5)], 16)
        .constant("table", Tensor::from_vec(&[2], vec![1.0f32, 2.0]).unwrap())
        .build()
        .unwrap();
    let outer = StructType::structure("Outer")
        .type_id(2)
        .nested("inner", &inner)
        .nested_array("more", &inner, 3)
        .array("x", DType::Float16, 4)
        .tensor("t", DType::Int4, &[2, 3])
        .typed("s", ValueType::sequence(ValueType::Struct(inner.clone())))
        .decoder(decoder)
        .build()
        .unwrap();
    let types = Catalogue::from_protos(&[outer.to_proto(), inner.to_proto()], None).unwrap();
    assert_eq!(types.get(2).unwrap(), &outer);
    assert_eq!(types.get(1).unwrap(), &inner);
    assert_eq!(types.get(2).unwrap().decoder().unwrap().name(), "Decode");
    // The nested type is a reference, declared once.
    assert_eq!(outer.to_proto().structure().unwrap().field()[0].type_().unwrap(), &nested(reference(1)));
}

// proves: GB1, O1
#[test]
fn encoded_values_come_back_with_shared_bytes() {
    let block = StructType::structure("B").type_id(1).array("codes", DType::Uint8, 4).build().unwrap();
    let types = Catalogue::from_protos(&[block.to_proto()], None).unwrap();
    let mut record = encoded(reference(1), Some(tensor(DType::Float, &[2, 4])), &[7; 8]);
    record.set_name("w");
    let mut layout = affine(DType::Int4, &[2], &[0.5, 2.0], Some(0), None);
    layout.zero_point = Some(Tensor::new(DType::Int4, &[2], bytes(&[0x21])).unwrap());
    let quantized = affine_value(&layout, tensor(DType::Float16, &[2, 3]), &[0x21, 0x43, 0x65]);
    for proto in [record, quantized] {
        let proto = EncodedValueProto::decode(proto.to_bytes()).unwrap();
        let payload = proto.raw_data().unwrap().clone();
        let value = EncodedValue::from_proto(&proto, &types, payload.clone()).unwrap();
        let again = value.to_proto().unwrap();
        assert_eq!(again.raw_data().unwrap().address(), payload.address());
        assert_eq!(again, proto);
    }
}
