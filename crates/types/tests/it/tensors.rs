//! `TensorProto` as tensors: every type, every place for data, and what is refused.

use heirloom_mem::{Bytes, DType};
use heirloom_proto::TensorProto;
use heirloom_types::{
    TensorError, Value, strings_to_proto, tensor_from_proto, tensor_to_proto, value_from_proto,
};

use crate::build::bytes;

fn proto(dtype: DType, dims: &[i64]) -> TensorProto {
    let mut proto = TensorProto::new();
    proto.set_data_type(dtype.onnx());
    proto.dims_mut().extend(dims.iter().copied());
    proto
}

fn data(proto: &TensorProto) -> Vec<u8> {
    tensor_from_proto(proto, None).unwrap().dense_bytes().unwrap().to_vec()
}

// proves: W4, W5
#[test]
fn raw_data_stay_where_they_are() {
    let file = bytes(&[9, 1, 2, 3, 4, 5, 6, 7, 8]);
    for dtype in DType::ALL {
        let Some(width) = dtype.payload_bytes(1) else { continue };
        if width > 8 {
            continue;
        }
        let elements = if width == 1 { 1 } else { 8 / width as i64 };
        let mut proto = proto(dtype, &[elements]);
        let len = dtype.payload_bytes(elements as usize).unwrap();
        // Types below a byte: a byte without unused bits set.
        let start = if dtype.bit_width().unwrap() < 8 { 1 } else { 9 - len };
        proto.set_raw_data(file.slice(start..start + len));
        let tensor = tensor_from_proto(&proto, None).unwrap();
        assert_eq!(tensor.address(), file.address() + start, "{dtype}");
        assert_eq!(tensor.region_id(), file.region_id());
        let again = tensor_to_proto(&tensor, "w").unwrap();
        assert_eq!(again.raw_data().unwrap().address(), file.address() + start);
        assert_eq!((again.name(), again.dims(), again.data_type()), ("w", proto.dims(), dtype.onnx()));
    }
}

// proves: W4
#[test]
fn typed_lists_are_converted_as_onnx_stores_them() {
    let ints = |dtype, dims: &[i64], entries: &[i32]| {
        let mut proto = proto(dtype, dims);
        proto.int32_data_mut().extend(entries.iter().copied());
        data(&proto)
    };
    assert_eq!(ints(DType::Int32, &[1], &[-2]), (-2i32).to_le_bytes());
    assert_eq!(ints(DType::Int16, &[2], &[-2, 3]), [0xfe, 0xff, 3, 0]);
    assert_eq!(ints(DType::Uint16, &[1], &[65535]), [0xff, 0xff]);
    assert_eq!(ints(DType::Int8, &[2], &[-2, 127]), [0xfe, 127]);
    assert_eq!(ints(DType::Uint8, &[1], &[255]), [255]);
    assert_eq!(ints(DType::Bool, &[3], &[0, 1, 2]), [0, 1, 1]);
    assert_eq!(ints(DType::Float16, &[1], &[0x3c00]), [0, 0x3c]);
    assert_eq!(ints(DType::BFloat16, &[1], &[0x3f80]), [0x80, 0x3f]);
    assert_eq!(ints(DType::Float8E4M3FN, &[2], &[0x7e, 0xfe]), [0x7e, 0xfe]);
    assert_eq!(ints(DType::Float8E8M0, &[1], &[127]), [127]);
    // As `onnx.helper.make_tensor` writes [1, -1, 0, 1, 1]: packed bytes, but an entry for each 6-bit float.
    assert_eq!(ints(DType::Int4, &[5], &[0xf1, 0x10, 0x01]), [0xf1, 0x10, 0x01]);
    assert_eq!(ints(DType::Float4E2M1, &[5], &[162, 32, 2]), [162, 32, 2]);
    assert_eq!(ints(DType::Int2, &[5], &[77, 1]), [77, 1]);
    assert_eq!(ints(DType::Float6E2M3, &[5], &[8, 40, 0, 8, 8]), [0x08, 0x0a, 0x20, 0x08]);

    let mut p = proto(DType::Float, &[2]);
    p.float_data_mut().extend([1.5, -2.0]);
    assert_eq!(tensor_from_proto(&p, None).unwrap().as_slice::<f32>().unwrap(), [1.5, -2.0]);
    let mut p = proto(DType::Complex64, &[1]);
    p.float_data_mut().extend([1.5, -2.0]);
    assert_eq!(data(&p), [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat());
    let mut p = proto(DType::Double, &[]);
    p.double_data_mut().push(0.1);
    assert_eq!(tensor_from_proto(&p, None).unwrap().as_slice::<f64>().unwrap(), [0.1]);
    let mut p = proto(DType::Complex128, &[1]);
    p.double_data_mut().extend([0.5, 1.0]);
    assert_eq!(data(&p).len(), 16);
    let mut p = proto(DType::Int64, &[1, 2]);
    p.int64_data_mut().extend([i64::MIN, 3]);
    assert_eq!(tensor_from_proto(&p, None).unwrap().as_slice::<i64>().unwrap(), [i64::MIN, 3]);
    let mut p = proto(DType::Uint64, &[1]);
    p.uint64_data_mut().push(u64::MAX);
    assert_eq!(tensor_from_proto(&p, None).unwrap().as_slice::<u64>().unwrap(), [u64::MAX]);
    let mut p = proto(DType::Uint32, &[1]);
    p.uint64_data_mut().push(u32::MAX.into());
    assert_eq!(tensor_from_proto(&p, None).unwrap().as_slice::<u32>().unwrap(), [u32::MAX]);
}

#[test]
fn strings_become_string_tensors_and_come_back() {
    let mut p = proto(DType::String, &[2]);
    p.string_data_mut().extend([&b"a"[..], b"\xff"]);
    let Value::Strings(strings) = value_from_proto(&p, None).unwrap() else { panic!() };
    assert_eq!((&strings.shape[..], &*strings.elements[1]), (&[2][..], &b"\xff"[..]));
    assert_eq!(strings_to_proto(&strings, ""), p);
    assert_eq!(tensor_from_proto(&p, None).unwrap_err(), TensorError::Strings);
    p.string_data_mut().push("more");
    assert!(matches!(value_from_proto(&p, None), Err(TensorError::Length { expected: 2, actual: 3, .. })));
    p.string_data_mut().clear();
    p.set_raw_data(bytes(&[1]));
    assert!(matches!(value_from_proto(&p, None), Err(TensorError::Field { field: "raw_data", .. })));
}

// proves: S3, E3
#[test]
fn data_that_do_not_fit_are_refused() {
    let error = |p: &TensorProto| tensor_from_proto(p, None).unwrap_err();
    let mut p = proto(DType::Float, &[2]);
    assert!(matches!(error(&p), TensorError::Length { expected: 8, actual: 0, .. }));
    p.set_raw_data(bytes(&[0; 7]));
    assert!(matches!(error(&p), TensorError::Length { actual: 7, .. }));
    p.set_raw_data(bytes(&[0; 8]));
    p.float_data_mut().extend([1.0, 2.0]);
    assert_eq!(error(&p), TensorError::TwoFields { first: "raw_data", second: "float_data" });
    p.clear_raw_data();
    p.int64_data_mut().push(1);
    assert_eq!(error(&p), TensorError::TwoFields { first: "float_data", second: "int64_data" });
    p.float_data_mut().clear();
    assert_eq!(error(&p), TensorError::Field { dtype: DType::Float, field: "int64_data" });
    assert_eq!(error(&proto(DType::Float, &[-1])), TensorError::Shape { dims: vec![-1] });
    assert!(matches!(error(&proto(DType::Float, &[i64::MAX, i64::MAX])), TensorError::Shape { .. }));
    let mut p = proto(DType::Float, &[]);
    p.set_data_type(99);
    assert_eq!(error(&p), TensorError::ElementType { number: 99 });
    let mut p = proto(DType::Int8, &[1]);
    p.int32_data_mut().push(200);
    assert_eq!(error(&p).to_string(), "entry 0 of `int32_data` is 200, which is no INT8");
    let mut p = proto(DType::Uint4, &[1]);
    p.set_raw_data(bytes(&[0x10]));
    assert_eq!(error(&p), TensorError::UnusedBits { dtype: DType::Uint4, byte: 0x10 });
    let mut p = proto(DType::Float, &[1]);
    p.segment_mut().set_begin(0);
    assert_eq!(error(&p), TensorError::Segment);
    // An empty tensor needs no data anywhere.
    assert_eq!(tensor_from_proto(&proto(DType::Float, &[0, i64::MAX, i64::MAX]), None).unwrap().len(), 0);
    let external = heirloom_proto::ExternalLocation::new("w.bin", 0, 4).unwrap();
    let mut p = proto(DType::Float, &[1]);
    p.set_external(&external);
    assert!(matches!(error(&p), TensorError::External { .. }));
    let claimed = Bytes::empty();
    let mut p = proto(DType::Float, &[1 << 60]);
    p.set_raw_data(claimed);
    assert!(matches!(error(&p), TensorError::Length { actual: 0, .. }));
}
