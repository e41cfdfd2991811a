use heirloom_mem::{Bytes, DType, Ledger, Shape, Storage, Tensor, ViewError, copy, element_count};

#[test]
fn every_onnx_type_has_its_number_and_width() {
    assert_eq!(DType::ALL.map(DType::onnx), std::array::from_fn::<i32, 28, _>(|i| i as i32 + 1));
    assert!(DType::ALL.into_iter().all(|t| DType::from_onnx(t.onnx()) == Some(t)));
    assert_eq!([0, -1, 29].map(DType::from_onnx), [None; 3]);
    assert_eq!(DType::Int4.payload_bytes(5), Some(3));
    assert_eq!(DType::Uint2.payload_bytes(5), Some(2));
    assert_eq!(DType::Int4.payload_bytes(0), Some(0));
    assert_eq!(DType::String.payload_bytes(1), None);
    assert_eq!(DType::Complex128.payload_bytes(usize::MAX), None);
}

#[test]
fn a_tensor_takes_exactly_the_bytes_of_its_shape() {
    let error = Tensor::new(DType::Float, &[2, 3], Bytes::from_vec(vec![0u8; 20])).unwrap_err();
    assert_eq!(error.to_string(), "a FLOAT tensor [2, 3] takes Some(24) bytes, not 20");
    assert!(Tensor::new(DType::Int4, &[usize::MAX, 2], Bytes::empty()).is_err());
    assert_eq!(element_count(&[usize::MAX, 2, 0]), Some(0));
    assert_eq!(element_count(&[usize::MAX, 2]), None);
}

// proves: L5
#[test]
fn u39_a_misaligned_view_is_refused_with_the_reason() {
    let bytes = Bytes::from_vec(vec![0u32; 3]).slice(1..9);
    let tensor = Tensor::new(DType::Float, &[2], bytes).unwrap();
    let error = tensor.as_slice::<f32>().unwrap_err();
    assert!(matches!(error, ViewError::Misaligned { dtype: DType::Float, .. }));
    assert!(error.to_string().starts_with("misaligned"));
    assert_eq!(tensor.dense_bytes().map(<[u8]>::len), Some(8));
}

// proves: Z2
#[test]
fn u10_an_empty_tensor_of_any_alignment_has_elements_to_view() {
    let bytes = Bytes::from_vec(vec![0u8; 4]).slice(1..1);
    let tensor = Tensor::new(DType::Float, &[1, 2, 0, 4], bytes).unwrap();
    assert_eq!(tensor.as_slice::<f32>().unwrap(), &[] as &[f32]);
    assert_eq!(tensor.block::<f32>(2, 1).unwrap(), &[] as &[f32]);
}

#[test]
fn u15_strided_elements_come_in_logical_order_without_a_copy() {
    // 0..7 as [1, 2, 2, 2], axes permuted by (0, 2, 3, 1).
    let bytes = Bytes::from_vec((0..8).map(|x| x as f32).collect());
    let address = bytes.address();
    let tensor = Tensor::strided(DType::Float, &[1, 2, 2, 2], &[8, 2, 1, 4], bytes).unwrap();
    assert_eq!(tensor.address(), address);
    assert!(matches!(tensor.as_slice::<f32>(), Err(ViewError::NotDense { .. })));
    let ledger = Ledger::default();
    let dense = copy::to_dense(&tensor, copy::Purpose::Kernel, &ledger);
    assert_eq!(dense.as_slice::<f32>().unwrap(), [0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0]);
    assert_eq!(ledger.counts().kernel_copied_bytes, 32);
}

#[test]
fn strides_that_leave_the_bytes_are_refused() {
    let bytes = || Bytes::from_vec(vec![0u8; 16]);
    assert!(Tensor::strided(DType::Float, &[2, 2], &[3, 1], bytes()).is_err());
    assert!(Tensor::strided(DType::Float, &[2], &[usize::MAX], bytes()).is_err());
    assert!(Tensor::strided(DType::Int4, &[2], &[1], bytes()).is_err());
    assert!(Tensor::strided(DType::Float, &[2], &[1, 1], bytes()).is_err());
    let dense = Tensor::strided(DType::Float, &[2, 2], &[2, 1], bytes()).unwrap();
    assert!(matches!(dense.storage(), Storage::Dense(_)));
}

#[test]
fn reshaping_keeps_the_memory() {
    let tensor = Tensor::from_vec(&[2, 3], vec![0i64; 6]).unwrap();
    let reshaped = tensor.reshape(&[3, 1, 2]).unwrap();
    assert_eq!((reshaped.address(), reshaped.shape()), (tensor.address(), &[3, 1, 2][..]));
    let error = tensor.reshape(&[4]).unwrap_err();
    assert_eq!(error, ViewError::Reshape { from: Shape::from_slice(&[2, 3]), to: Shape::from_slice(&[4]) });
}

#[test]
fn elements_of_another_type_are_refused() {
    let tensor = Tensor::scalar(1i32);
    let error = tensor.as_slice::<f32>().unwrap_err();
    assert_eq!(error, ViewError::Type { expected: DType::Float, actual: DType::Int32 });
}
