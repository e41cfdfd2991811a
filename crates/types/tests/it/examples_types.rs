//! The worked examples of the value contract: types, layouts, records, references.

use heirloom_mem::{Bytes, DType, Ledger, Tensor};
use heirloom_proto::{StructTypeProto, TensorProto};
use heirloom_types::{
    Catalogue, Codec, CodecError, EncodedValue, Faults, Layout, RecordError, StructLayout, StructType,
    TensorError, TypeError, ValueType, tensor_from_proto,
};

use crate::build::*;

fn catalogue(protos: Vec<StructTypeProto>) -> Catalogue {
    Catalogue::from_protos(&protos, None).unwrap()
}

fn linear_int4(id: u64, scale: Option<f32>, zero_point: Option<i64>) -> StructTypeProto {
    let scale_field = match scale {
        Some(value) => constant("scale", &Tensor::scalar(value)),
        None => field("scale", tensor(DType::Float, &[])),
    };
    let zero_field = match zero_point {
        Some(value) => constant("zero_point", &Tensor::scalar(value)),
        None => field("zero_point", tensor(DType::Int64, &[])),
    };
    let values = field("values", nested(array(tensor(DType::Int4, &[]), 128)));
    declared(id, structure(vec![values, scale_field, zero_field]))
}

// proves: E7, L2, S3
#[test]
fn example_7_leaves_lie_at_any_byte_and_bit() {
    let types = catalogue(vec![linear_int4(1003, Some(0.25), Some(-2)), linear_int4(1002, None, None)]);
    let fixed = types.get(1003).unwrap();
    assert_eq!(fixed.record_bytes(), Ok(64));
    let own = types.get(1002).unwrap();
    assert_eq!(own.record_bytes(), Ok(76));

    let mut payload = vec![0x21; 64];
    payload.extend([0x00, 0x00, 0x80, 0x3e, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let proto = encoded(reference(1002), Some(tensor(DType::Float, &[128])), &payload);
    let value = EncodedValue::from_proto(&proto, &types, bytes(&payload)).unwrap();
    let record = value.records().unwrap().get(0).unwrap();
    assert_eq!(record.field("scale").unwrap().as_f64(), Ok(0.25));
    let zero_point = record.field("zero_point").unwrap();
    assert_eq!((zero_point.bit_offset(), zero_point.as_i64()), (68 * 8, Ok(-2)));
    assert_eq!(record.field("values[127]").unwrap().as_i64(), Ok(2));

    // The same fields as constants of the type, read in the same way.
    let proto = encoded(reference(1003), Some(tensor(DType::Float, &[128])), &payload[..64]);
    let value = EncodedValue::from_proto(&proto, &types, bytes(&payload[..64])).unwrap();
    let record = value.records().unwrap().get(0).unwrap();
    assert_eq!(record.field("scale").unwrap().as_f64(), Ok(0.25));
    assert_eq!(record.field("zero_point").unwrap().as_i64(), Ok(-2));

    let nibbles = StructType::structure("")
        .field("a", DType::Uint4)
        .field("b", DType::Float)
        .field("c", DType::Uint4)
        .build()
        .unwrap();
    let layout = StructLayout::new(nibbles).unwrap();
    let payload = bytes(&[0x0a, 0x00, 0x00, 0xf8, 0x53]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    let numbers = ["a", "b", "c"].map(|name| record.field(name).unwrap().as_f64().unwrap());
    assert_eq!(numbers, [10.0, 1.0, 5.0]);
}

// proves: L2
#[test]
fn example_8_a_bit_packing_interleaves_its_components() {
    let pairs = StructType::bit_packing("", &[("a", 3), ("b", 5)], 2).build().unwrap();
    let layout = StructLayout::new(pairs).unwrap();
    let payload = bytes(&[0xb5, 0x1e]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    let read = |path: &str| record.field(path).unwrap().as_u64().unwrap();
    assert_eq!([read("[0].a"), read("[0].b"), read("[1].a"), read("[1].b")], [5, 22, 6, 3]);

    let octal = StructType::bit_packing("", &[("digit", 3)], 8).build().unwrap();
    let layout = StructLayout::new(octal).unwrap();
    let payload = bytes(&[0x88, 0xc6, 0xfa]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    let digits: Vec<u64> = record.field("digit").unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
    assert_eq!(digits, [0, 1, 2, 3, 4, 5, 6, 7]);
}

// proves: L1
#[test]
fn example_9_sizes_of_types_do_not_wrap() {
    let largest = StructType::array("", ValueType::tensor(DType::Int4, &[]), (1 << 62) - 1).build().unwrap();
    assert_eq!(largest.bit_size(), Some(u64::MAX - 3));
    assert_eq!(largest.record_bytes(), Err(TypeError::PartialBytes { bits: u64::MAX - 3 }));
    let fault = StructType::array("", ValueType::tensor(DType::Int4, &[]), 1 << 62).build().unwrap_err();
    assert!(matches!(fault.error, TypeError::SizeOverflow { .. }), "{fault}");
}

fn faults(protos: &[StructTypeProto]) -> Vec<String> {
    Catalogue::check(protos, None).iter().map(ToString::to_string).collect()
}

/// The codebook types of the contract.
fn codebook_types() -> Vec<StructTypeProto> {
    let table = Tensor::from_vec(&[4], vec![-1.0f32, -0.25, 0.25, 1.0]).unwrap();
    let mut block =
        structure(vec![field("codes", nested(packing(&[("index", 2)], 32))), constant("codebook", &table)]);
    block.set_name("CODEBOOK2_BLOCK_32");
    let mut scaled = structure(vec![
        field("quantized", nested(reference(1101))),
        field("scale", tensor(DType::Float, &[])),
    ]);
    scaled.set_name("SCALED_CODEBOOK2_BLOCK_32");
    vec![declared(1101, block), declared(1102, scaled)]
}

/// What the contract says that 1102's decoder computes.
#[derive(Debug)]
struct ScaledCodebook(std::sync::Arc<StructLayout>);

impl Codec for ScaledCodebook {
    fn elements(&self) -> usize {
        32
    }

    fn record_bytes(&self) -> usize {
        self.0.record_bytes
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.check(records.len(), out.len())?;
        let records = heirloom_types::Records::new(&self.0, records).unwrap();
        for (record, out) in records.iter().zip(out.chunks_mut(32)) {
            let scale = record.field("scale").unwrap().as_f64().unwrap();
            let table = record.field("quantized.codebook").unwrap();
            for (index, to) in record.field("quantized.codes.index").unwrap().iter().zip(out) {
                let value = table.index(index.as_u64().unwrap()).unwrap().as_f64().unwrap();
                *to = (scale * value) as f32;
            }
        }
        Ok(())
    }
}

// proves: C1, C3, D1, E7, L1
#[test]
fn example_10_references_resolve_once_and_only_once() {
    let mut more = reference(2001);
    more.set_name("x");
    let int8 = || structure(vec![field("v", tensor(DType::Int8, &[]))]);
    let user = |inner: StructTypeProto| declared(1, structure(vec![field("f", nested(inner))]));
    assert_eq!(
        faults(&[declared(2001, int8()), user(more)]),
        [
            "`struct_types[1].structure.field[0].type.struct_type`: a reference to type 2001 holds the id and nothing else; remove `name`"
        ]
    );
    assert!(faults(&[user(reference(0))])[0].contains("`type_id` 0 is no identity"));
    let [a, b] = [(1, 2), (2, 1)]
        .map(|(id, other)| declared(id, structure(vec![field("f", nested(reference(other)))])));
    assert_eq!(faults(&[a, b]), ["`struct_types[0]`: struct types contain each other: 1 → 2 → 1"]);

    // A diamond of 30 levels has 2^30 paths.
    let mut diamond = vec![declared(1, array(tensor(DType::Int8, &[]), 1))];
    diamond.extend((2..=31).map(|id| {
        let below = || nested(reference(id - 1));
        declared(id, structure(vec![field("l", below()), field("r", below())]))
    }));
    let types = catalogue(diamond.clone());
    assert_eq!(types.get(31).unwrap().bit_size(), Some(8 << 30));
    let other = catalogue(diamond);
    assert_eq!(types.get(31).unwrap().difference(other.get(31).unwrap()), None);
    assert_eq!(types.get(31).unwrap().slots(1000), Err(RecordError::TooManySlots { limit: 1000 }));

    // A chain that is too deep is refused where it becomes so, and only there.
    let mut chain = vec![declared(1, int8())];
    chain.extend((2..=50_000).map(|id| declared(id, structure(vec![field("f", nested(reference(id - 1)))]))));
    chain.reverse();
    let found = Catalogue::check(&chain, None);
    assert_eq!(found.len(), 1);
    assert!(matches!(found[0].error, TypeError::TooDeep { .. }), "{}", found[0]);

    // The decoder of 1101, if it has one, is none of 1102's business.
    let mut protos = codebook_types();
    let mut decoder = heirloom_proto::FunctionProto::new();
    decoder.set_name("never");
    protos[0].set_decoder(decoder);
    let types = catalogue(protos);
    assert_eq!(types.get(1101).unwrap().record_bytes(), Ok(8));
    assert_eq!(types.get(1102).unwrap().record_bytes(), Ok(12));
    assert!(types.get(1102).unwrap().decoder().is_none());
    let payload = [0xe4, 0xe4, 0xe4, 0xe4, 0xe4, 0xe4, 0xe4, 0xe4, 0x00, 0x00, 0x00, 0x40];
    let codec = ScaledCodebook(StructLayout::new(types.get(1102).unwrap().clone()).unwrap().into());
    for count in [1, 128] {
        let payload = payload.repeat(count);
        let proto = encoded(reference(1102), Some(tensor(DType::Float, &[32 * count])), &payload);
        let value = EncodedValue::from_proto(&proto, &types, bytes(&payload)).unwrap();
        assert_eq!(value.record_count(), Some(count));
        let out = value.decode(Some(&codec), &Ledger::default()).unwrap();
        assert_eq!(out.as_slice::<f32>().unwrap(), [-2.0, -0.5, 0.5, 2.0].repeat(8 * count));
    }
}

// proves: L4, S3, E1
#[test]
fn example_11_constants_take_no_bits() {
    let table = Tensor::from_vec(&[2], vec![1.0f32, 2.0]).unwrap();
    let constants = StructType::structure("").constant("table", table.clone()).build().unwrap();
    assert_eq!(constants.bit_size(), Some(0));
    let proto = encoded(constants.to_proto(), None, &[]);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), Bytes::empty()).unwrap_err();
    assert_eq!(faults.0[0].error, TypeError::EmptyRecord);
    let with_code =
        StructType::structure("").nested("constants", &constants).field("code", DType::Int8).build().unwrap();
    let proto = encoded(with_code.to_proto(), None, &[7; 4]);
    let value = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&[7; 4])).unwrap();
    assert_eq!(value.record_count(), Some(4));
    assert!(value.records().unwrap().iter().all(|r| r.field("code").unwrap().as_i64() == Ok(7)));
}

// proves: B2, R3
#[test]
fn example_12_strings_are_found_through_references_and_constants() {
    let label = heirloom_types::Constant::Strings(
        heirloom_types::StringTensor { shape: Default::default(), elements: vec![b"x"[..].into()] }.into(),
    );
    let labelled = StructType::structure("Labelled")
        .type_id(1)
        .field("payload", DType::Float)
        .constant_value("label", label)
        .build()
        .unwrap();
    let outer = StructType::structure("Outer").type_id(2).nested("inner", &labelled).build().unwrap();
    let types = catalogue(vec![outer.to_proto(), labelled.to_proto()]);
    for id in [1, 2] {
        let proto = encoded(reference(id), None, &[0; 4]);
        let value = EncodedValue::from_proto(&proto, &types, bytes(&[0; 4])).unwrap();
        assert!(heirloom_types::Value::Encoded(value.into()).contains_strings());
        let ty = types.value_type(&nested(reference(id)), "").unwrap();
        assert!(ty.contains_strings() && ValueType::sequence(ty).contains_strings());
    }
    assert!(!ValueType::tensor(DType::Float, &[]).contains_strings());
}

// proves: W4, S3
#[test]
fn example_13_int4_constants_come_packed_in_int32_data() {
    let mut proto = TensorProto::new();
    proto.dims_mut().push(9);
    proto.set_data_type(DType::Int4.onnx());
    proto.int32_data_mut().extend([0x21, 0x43, 0x65, 0x87, 0x09]);
    let tensor = tensor_from_proto(&proto, None).unwrap();
    assert_eq!(tensor.dense_bytes().unwrap(), [0x21, 0x43, 0x65, 0x87, 0x09]);
    let emitted = heirloom_types::tensor_to_proto(&tensor, "").unwrap();
    assert_eq!(emitted.raw_data().unwrap()[..], [0x21, 0x43, 0x65, 0x87, 0x09]);
    assert!(emitted.int32_data().is_empty());
    for entries in [4, 9] {
        proto.int32_data_mut().clear();
        proto.int32_data_mut().extend(vec![1; entries]);
        let error = tensor_from_proto(&proto, None).unwrap_err();
        assert!(matches!(error, TensorError::Length { expected: 5, .. }), "{error}");
    }
    proto.int32_data_mut().clear();
    proto.int32_data_mut().extend([0, 0, 0, 0, 0x19]);
    assert!(matches!(tensor_from_proto(&proto, None), Err(TensorError::UnusedBits { byte: 0x19, .. })));
}

// proves: E1, E2, E7
#[test]
fn example_14_payload_lengths_give_record_counts() {
    let block = structure(vec![
        field("codes", nested(array(tensor(DType::Int4, &[]), 32))),
        field("scale", tensor(DType::Float, &[])),
    ]);
    let types = catalogue(vec![declared(2001, block)]);
    assert_eq!(types.get(2001).unwrap().record_bytes(), Ok(20));
    let load = |payload: &[u8], elements| {
        let proto = encoded(reference(2001), Some(tensor(DType::Float, &[elements])), payload);
        EncodedValue::from_proto(&proto, &types, bytes(payload))
    };
    for (len, count) in [(2560, 128), (5120, 256), (0, 0)] {
        assert_eq!(load(&vec![0; len], count * 32).unwrap().record_count(), Some(count));
    }
    let faults = load(&[0; 30], 32).unwrap_err();
    assert_eq!(faults.0[0].error, TypeError::PartialRecord { payload: 30, record: 20 });
}

// proves: L4, S2
#[test]
fn example_15_fifteen_bits_are_a_type_and_no_root() {
    let odd = StructType::bit_packing("", &[("a", 5)], 3).build().unwrap();
    assert_eq!(odd.bit_size(), Some(15));
    let proto = encoded(odd.to_proto(), None, &[0; 15]);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&[0; 15])).unwrap_err();
    assert_eq!(faults.0[0].error, TypeError::PartialBytes { bits: 15 });
    // Within a type it has its place.
    let padded =
        StructType::structure("").nested("odd", &odd).bits("padding", &[("zero", 1)], 1).build().unwrap();
    assert_eq!(padded.record_bytes(), Ok(2));
}

// proves: W1
#[test]
fn example_16_the_last_member_of_a_oneof_is_the_type() {
    // kind: type_ref 2001, then an array of 3 UINT8; and the other way round.
    let mut array = array(tensor(DType::Uint8, &[]), 3).to_bytes().to_vec();
    let mut reference = reference(2001).to_bytes().to_vec();
    let read = |data: Vec<u8>| StructTypeProto::decode(Bytes::from_vec(data)).unwrap();
    let first_then_second = [&reference[..], &array[..]].concat();
    let types = Catalogue::new();
    assert_eq!(types.struct_type(&read(first_then_second), "", None).unwrap().record_bytes(), Ok(3));
    array.append(&mut reference);
    let Faults(faults) = types.struct_type(&read(array), "", None).unwrap_err();
    assert!(matches!(faults[0].error, TypeError::Unresolved { id } if id.get() == 2001));
    // A wrong wire type is an unknown field: type_ref as a fixed64 says nothing.
    let unknown = read(vec![4 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(types.struct_type(&unknown, "", None).unwrap_err().0[0].error, TypeError::NoKind);
}

// proves: E5
#[test]
fn a_codec_that_yields_another_number_of_elements_is_an_error() {
    let types = catalogue(codebook_types());
    let layout = StructLayout::new(types.get(1102).unwrap().clone()).unwrap();
    let codec = ScaledCodebook(layout.into());
    for elements in [31, 33, 64] {
        let proto = encoded(reference(1102), Some(tensor(DType::Float, &[elements])), &[0; 12]);
        let value = EncodedValue::from_proto(&proto, &types, bytes(&[0; 12])).unwrap();
        let error = value.decode(Some(&codec), &Ledger::default()).unwrap_err();
        assert_eq!(error, CodecError::Elements { expected: 32, actual: elements });
    }
    let proto = encoded(reference(1102), Some(tensor(DType::Float, &[1 << 60])), &[0; 12]);
    let value = EncodedValue::from_proto(&proto, &types, bytes(&[0; 12])).unwrap();
    assert!(matches!(value.decode(None, &Ledger::default()), Err(CodecError::NoCodec { .. })));
    assert!(matches!(value.decode(Some(&codec), &Ledger::default()), Err(CodecError::Elements { .. })));
    assert!(matches!(value.layout, Layout::Struct(_)));
}
