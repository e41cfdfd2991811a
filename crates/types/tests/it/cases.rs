//! Cases of people who quantize and deploy models.

use std::sync::Arc;

use heirloom_mem::{Bytes, DType, Ledger, Tensor};
use heirloom_types::{
    Affine, BindingError, Catalogue, Codec, CodecError, CodecRegistry, EncodedValue, Fault, NativeRecord,
    RegistryError, StructLayout, StructType, TensorError, TypeError, ValueType, tensor_from_proto,
};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::build::*;

fn encode(ty: DType, values: &[f32]) -> Vec<u8> {
    let layout = affine(ty, &[], &[1.0], None, None);
    let mut codes = vec![0xff; layout.payload_bytes(values.len()).unwrap()];
    layout.encode(&logical(DType::Float, &[values.len()]), values, &mut codes).unwrap();
    codes
}

fn zero_points(layout: &mut Affine, codes: &[u8]) {
    layout.zero_point = Some(Tensor::new(layout.storage, layout.scale.shape(), bytes(codes)).unwrap());
}

fn decoded(layout: &Affine, shape: &[usize], codes: &[u8]) -> Vec<f32> {
    layout.check(&logical(DType::Float, shape)).unwrap();
    let mut out = vec![0.0; shape.iter().product()];
    layout.decode_range(&logical(DType::Float, shape), codes, 0..out.len(), &mut out).unwrap();
    out
}

// proves: A2
#[test]
fn u8_the_first_code_lies_in_the_low_bits() {
    assert_eq!(encode(DType::Int4, &[1.0, 2.0, -3.0]), [0x21, 0x0d]);
    assert_eq!(encode(DType::Uint4, &[1.0, 2.0]), [0x21]);
    assert_eq!(encode(DType::Uint2, &[0.0, 1.0, 2.0, 3.0]), [0xe4]);
    assert_eq!(encode(DType::Uint2, &[3.0, 0.0, 1.0]), [0x13]);
    assert_eq!(encode(DType::Int2, &[-1.0, 1.0, -2.0]), [0x27]);
    let layout = affine(DType::Int4, &[], &[1.0], None, None);
    let proto = affine_value(&layout, tensor(DType::Float, &[3]), &[0x21, 0xfd]);
    let faults = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&[0x21, 0xfd])).unwrap_err();
    assert_eq!(faults.0[0].error, TensorError::UnusedBits { dtype: DType::Int4, byte: 0xfd }.into());
}

// proves: E3
#[test]
fn u12_a_payload_never_lies_outside_the_models_folder() {
    let folder = std::env::temp_dir().join(format!("heirloom-types-u12-{}", std::process::id()));
    let model = folder.join("model");
    std::fs::create_dir_all(model.join("sub")).unwrap();
    std::fs::write(folder.join("outside.bin"), [1, 2]).unwrap();
    std::fs::write(model.join("sub/w.bin"), [1, 2]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join("outside.bin"), model.join("link.bin")).unwrap();
    let files = heirloom_proto::ExternalResolver::new(&model).unwrap();
    let ty = StructType::structure("").field("x", DType::Int8).build().unwrap();
    let load = |location: &str| {
        let mut proto = encoded(ty.to_proto(), None, &[]);
        let place = heirloom_proto::ExternalLocation::new("w.bin", 0, 2).unwrap();
        proto.set_external(&place);
        proto.external_data_mut()[0].set_value(location);
        let checked = EncodedValue::check(&proto, &Catalogue::new(), None, "").len();
        (checked, EncodedValue::load(&proto, &Catalogue::new(), &files))
    };
    let absolute = folder.join("outside.bin");
    let bad =
        ["../outside.bin", "sub/../../outside.bin", absolute.to_str().unwrap(), "C:\\w.bin", "", "a\0b"];
    for location in bad {
        let (faults, loaded) = load(location);
        assert!(faults == 1 && loaded.is_err(), "{location:?}");
    }
    assert!(load("link.bin").1.is_err());
    let (faults, loaded) = load("sub/w.bin");
    assert_eq!((faults, loaded.unwrap().record_count()), (0, Some(2)));
    std::fs::remove_dir_all(&folder).unwrap();
}

// proves: A4, A6
#[test]
fn u26_blocks_along_an_axis_do_not_interleave() {
    let codes = [0x77; 4];
    let mut layout = affine(DType::Int4, &[2, 2], &[1.0, 2.0, 0.5, 4.0], Some(1), Some(2));
    zero_points(&mut layout, &[0x21, 0x43]);
    assert_eq!(decoded(&layout, &[2, 4], &codes), [6.0, 6.0, 10.0, 10.0, 2.0, 2.0, 12.0, 12.0]);
    let mut proto = affine_value(&layout, tensor(DType::Float, &[2, 4]), &codes);
    proto.affine_mut().set_axis(-1);
    let value = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&codes)).unwrap();
    let from_the_back = value.decode(None, &Ledger::default()).unwrap();
    assert_eq!(from_the_back.as_slice::<f32>().unwrap(), [6.0, 6.0, 10.0, 10.0, 2.0, 2.0, 12.0, 12.0]);
    // Axis 0 of [4, 2]: rows 0 and 1 share [1, 2], rows 2 and 3 share [0.5, 4].
    let mut rows = affine(DType::Int4, &[2, 2], &[1.0, 2.0, 0.5, 4.0], Some(0), Some(2));
    zero_points(&mut rows, &[0x21, 0x43]);
    assert_eq!(decoded(&rows, &[4, 2], &codes), [6.0, 10.0, 6.0, 10.0, 2.0, 12.0, 2.0, 12.0]);
}

// proves: A6
#[test]
fn u28_every_block_size_decodes() {
    let (rows, columns) = (4, 2048);
    for block in [16, 32, 64, 128, 256, 512, 1024, 2048] {
        let blocks = columns / block;
        let mut layout =
            affine(DType::Uint4, &[rows, blocks], &vec![0.5; rows * blocks], Some(1), Some(block));
        zero_points(&mut layout, &vec![0x33; (rows * blocks).div_ceil(2)]);
        let weights = decoded(&layout, &[rows, columns], &vec![0x22; rows * columns / 2]);
        for row in weights.chunks(columns) {
            assert_eq!(row.iter().sum::<f32>(), -1024.0, "block {block}");
        }
    }
}

// proves: A2, A4
#[test]
fn u30_zero_points_are_packed_over_the_whole_tensor_not_per_row() {
    let codes: Vec<u8> = (0..8).map(|i| ((2 * i + 1) << 4) | (2 * i)).collect();
    let mut layout = affine(DType::Uint4, &[3, 5], &[1.0; 15], Some(1), Some(2));
    let mut packed = codes.clone();
    *packed.last_mut().unwrap() &= 0x0f;
    assert_eq!(layout.payload_bytes(15), Some(8));
    zero_points(&mut layout, &packed);
    let weights = decoded(&layout, &[3, 10], &[0; 15]);
    for (i, weight) in weights.iter().enumerate() {
        // Code i of the zero points is i; 15 does not occur.
        assert_eq!(*weight, -((i / 2) as f32), "element {i}");
    }
    // Row 1, block 0 is code 5: the high nibble of byte 2.
    assert_eq!(packed[2] >> 4, 5);
    assert_eq!(weights[10], -5.0);
}

// proves: A2, W4
#[test]
fn u32_four_bit_values_take_four_bits() {
    let codes = encode(DType::Int4, &[-4.0; 4096]);
    assert_eq!(codes, [0xcc; 2048]);
    let layout = affine(DType::Int4, &[], &[0.25], None, None);
    let proto = affine_value(&layout, tensor(DType::Float, &[4096]), &codes);
    assert!(proto.encoded_len() < 2300, "{}", proto.encoded_len());
    let value = EncodedValue::from_proto(&proto, &Catalogue::new(), bytes(&codes)).unwrap();
    let out = value.decode(None, &Ledger::default()).unwrap();
    assert!(out.as_slice::<f32>().unwrap().iter().all(|x| *x == -1.0));
    // Some writers sign-extend the packed bytes into `int32_data`.
    for entry in [0xcc, -0x34] {
        let mut constant = heirloom_proto::TensorProto::new();
        constant.dims_mut().push(4096);
        constant.set_data_type(DType::Int4.onnx());
        constant.int32_data_mut().extend(vec![entry; 2048]);
        assert_eq!(tensor_from_proto(&constant, None).unwrap().dense_bytes().unwrap(), codes);
    }
}

/// Counts how often it runs.
#[derive(Debug)]
struct Counting(std::sync::atomic::AtomicUsize);

impl Codec for Counting {
    fn elements(&self) -> usize {
        2
    }

    fn record_bytes(&self) -> usize {
        2
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.check(records.len(), out.len())?;
        out.iter_mut().zip(records).for_each(|(to, from)| *to = f32::from(*from) * 0.5);
        Ok(())
    }
}

// proves: D2, W5, E6
#[test]
fn u33_an_unknown_type_loads_and_is_refused_only_where_it_is_used() {
    let unknown = |step: f32| {
        StructType::structure("Mystery")
            .type_id(990_001)
            .array("codes", DType::Uint8, 2)
            .constant("step", Tensor::scalar(step))
            .build()
            .unwrap()
    };
    let types = Catalogue::from_protos(&[unknown(0.5).to_proto()], None).unwrap();
    let proto = encoded(reference(990_001), Some(tensor(DType::Float, &[4])), &[1, 2, 3, 4]);
    let value = EncodedValue::from_proto(&proto, &types, bytes(&[1, 2, 3, 4])).unwrap();
    let layout = value.layout.as_struct().unwrap();
    // (b) No consumer: the error names the type.
    let error = CodecRegistry::new().find(layout).unwrap_err();
    assert_eq!(error.to_string(), "no codec is registered for struct `Mystery` (990001)");
    // (c) A consumer for another constant: refused, naming it.
    let codec = std::sync::Arc::new(Counting(0.into()));
    let mut registry = CodecRegistry::new();
    registry.register(&unknown(0.25), codec.clone()).unwrap();
    let RegistryError::Declaration { difference, .. } = registry.find(layout).unwrap_err() else { panic!() };
    assert_eq!(difference.path, "step");
    assert!(registry.register(&unknown(0.5), codec.clone()).is_err());
    // The right consumer: found, and run only when asked.
    let mut registry = CodecRegistry::new();
    registry.register(&unknown(0.5), codec.clone()).unwrap();
    let found = registry.find(layout).unwrap().clone();
    assert_eq!(codec.0.load(std::sync::atomic::Ordering::Relaxed), 0);
    let out = value.decode(Some(&*found), &Ledger::default()).unwrap();
    assert_eq!(out.as_slice::<f32>().unwrap(), [0.5, 1.0, 1.5, 2.0]);
    assert_eq!(codec.0.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Debug, NativeRecord)]
#[record(type_id = 39)]
#[repr(C)]
struct Lone {
    value: f32,
}

// proves: L5, O1
#[test]
fn u39_a_payload_at_an_odd_offset_is_used_in_place() {
    let file = Bytes::from_vec((0..4105u64).map(|i| f32::from(i as u8)).collect::<Vec<f32>>());
    assert_eq!(file.address() % 4, 0);
    let types = Catalogue::from_protos(&[Lone::declaration().unwrap().to_proto()], None).unwrap();
    let proto = encoded(reference(39), None, &[]);
    let odd = EncodedValue::from_proto(&proto, &types, file.slice(4097..4105)).unwrap();
    assert_eq!(odd.payload.address(), file.address() + 4097);
    let BindingError::Misaligned { address, align } = odd.view::<Lone>().unwrap_err() else { panic!() };
    assert_eq!((address, align), (file.address() + 4097, 4));
    let expected = f32::from_le_bytes(file[4097..4101].try_into().unwrap());
    let records = odd.records().unwrap();
    assert_eq!(records.get(0).unwrap().field("value").unwrap().as_f64(), Ok(f64::from(expected)));
    let even = EncodedValue::from_proto(&proto, &types, file.slice(4096..4104)).unwrap();
    let view = even.view::<Lone>().unwrap();
    assert_eq!((view.as_ptr().addr(), view.len(), view[1].value), (file.address() + 4096, 2, 1.0));
}

/// Padded by the compiler, which deriving refuses: written by hand.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Debug)]
#[repr(C)]
struct Natural {
    a: i8,
    b: f32,
    c: i64,
}

impl NativeRecord for Natural {
    const TYPE_ID: u64 = 66;

    fn declaration() -> Result<Arc<StructType>, Fault> {
        Tight::declaration()
    }

    fn offsets() -> Vec<(&'static str, usize)> {
        use std::mem::offset_of;
        vec![("a", offset_of!(Natural, a)), ("b", offset_of!(Natural, b)), ("c", offset_of!(Natural, c))]
    }
}

/// The same fields without gaps, at any address.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 66, name = "Natural")]
#[repr(C, packed)]
struct Tight {
    a: i8,
    b: f32,
    c: i64,
}

#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Debug, NativeRecord)]
#[record(type_id = 67)]
#[repr(C)]
struct Padded {
    a: i8,
    padding: [u8; 3],
    b: f32,
    c: i64,
}

// proves: L2, L5, O2
#[test]
fn u66_misaligned_fields_are_read_and_typed_views_need_explicit_padding() {
    let tight = StructType::structure("Natural")
        .type_id(66)
        .field("a", DType::Int8)
        .field("b", DType::Float)
        .field("c", DType::Int64)
        .build()
        .unwrap();
    assert_eq!(tight.record_bytes(), Ok(13));
    let layout = StructLayout::new(tight.clone()).unwrap();
    let mut payload = vec![0xff];
    payload.extend(1.5f32.to_le_bytes());
    payload.extend((-3i64).to_le_bytes());
    let payload = bytes(&payload);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    assert_eq!(record.field("a").unwrap().as_i64(), Ok(-1));
    let (b, c) = (record.field("b").unwrap(), record.field("c").unwrap());
    assert_eq!((b.bit_offset(), b.as_f64()), (8, Ok(1.5)));
    assert_eq!((c.bit_offset(), c.as_i64()), (40, Ok(-3)));
    let types = Catalogue::from_protos(&[tight.to_proto()], None).unwrap();
    let value = EncodedValue::from_proto(&encoded(reference(66), None, &[]), &types, payload).unwrap();
    let error = value.view::<Natural>().unwrap_err();
    assert_eq!(error, BindingError::Size { record: 13, native: 16 });
    assert!(error.to_string().contains("declare padding as fields"));
    let view = value.view::<Tight>().unwrap();
    assert_eq!((view.len(), view.as_ptr().addr()), (1, value.payload.address()));
    assert_eq!(({ view[0].a }, { view[0].b }, { view[0].c }), (-1, 1.5, -3));

    let types = Catalogue::from_protos(&[Padded::declaration().unwrap().to_proto()], None).unwrap();
    let memory = Bytes::from_vec(vec![-1i64, -3]);
    let value = EncodedValue::from_proto(&encoded(reference(67), None, &[]), &types, memory.clone()).unwrap();
    let view = value.view::<Padded>().unwrap();
    assert_eq!(view.as_ptr().addr(), memory.address());
    assert_eq!((view[0].a, view[0].c, view[0].padding), (-1, -3, [0xff; 3]));
    assert!(view[0].b.is_nan());
}

// proves: E2
#[test]
fn u68_a_large_external_value_is_described_without_its_payload() {
    let block = StructType::structure("Q4_0")
        .type_id(68)
        .field("scale", DType::Float16)
        .array("codes", DType::Uint4, 32)
        .build()
        .unwrap();
    let types = Catalogue::from_protos(&[block.to_proto()], None).unwrap();
    let mut proto = encoded(reference(68), Some(tensor(DType::Float, &[4096, 4096])), &[]);
    proto.set_external(&heirloom_proto::ExternalLocation::new("w.bin", 4096, 9_437_184).unwrap());
    proto.set_name("w");
    // No file is there: nothing was read.
    assert_eq!(EncodedValue::check(&proto, &types, None, ""), []);
    let ty = heirloom_types::EncodedType::from_proto(&proto, &types, None, "").unwrap();
    let layout = ty.layout.as_struct().unwrap();
    assert_eq!(layout.record_bytes, 18);
    assert_eq!(9_437_184 / layout.record_bytes, 524_288);
    let slots = layout.declaration.slots(100).unwrap();
    let table: Vec<_> = slots.iter().map(|s| (&*s.path, s.leaf.to_string(), s.bit_offset)).collect();
    assert_eq!(table, [("scale", "FLOAT16".into(), 0), ("codes", "UINT4".into(), 16)]);
    assert_eq!(slots[1].elements(), Some(32));
    assert_eq!(ValueType::Tensor((&ty.logical.unwrap()).into()).to_string(), "FLOAT[4096, 4096]");
    assert_eq!(layout.declaration.to_string(), "struct `Q4_0` (68)");
    assert!(layout.declaration.decoder().is_none());
}

// proves: E5
#[test]
fn faults_of_encoded_values_name_every_value_that_is_wrong() {
    let types = Catalogue::new();
    let mut proto =
        affine_value(&affine(DType::Int8, &[], &[1.0], None, None), tensor(DType::Double, &[2]), &[1]);
    proto.affine_mut().set_storage_type(DType::Int16.onnx().into());
    let faults = EncodedValue::check(&proto, &types, None, "graph.encoded_initializer[3]");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].path, "graph.encoded_initializer[3].affine.storage_type");
    let mut proto = encoded(reference(7), Some(ValueType::unranked(DType::Float).to_proto()), &[1]);
    let faults = EncodedValue::check(&proto, &types, None, "v");
    let paths: Vec<&str> = faults.iter().map(|f| &*f.path).collect();
    assert_eq!(paths, ["v.logical_type", "v.struct_type"]);
    proto.clear_layout();
    let faults = EncodedValue::check(&proto, &types, None, "v");
    assert!(faults.iter().any(|f| f.error == TypeError::NoLayout));
}
