//! The affine layout against `onnx.reference` and ONNX Runtime (fixtures/affine.py), and its rules.

use heirloom_mem::{DType, Tensor};
use heirloom_types::{Affine, AffineError, CodecError, Layout};
use std::sync::Arc;

use crate::affine_cases::compare;
use crate::build::{affine, bytes, logical};

// proves: A6, A4, A3, A7
#[test]
fn every_storage_axis_block_and_scale_type_equals_onnx_to_the_bit() {
    let (cases, quantized) = compare(include_bytes!("../fixtures/affine.bin"));
    assert_eq!(cases, 648);
    assert!(quantized > 400, "{quantized}");
}

// proves: A6
#[test]
fn long_runs_are_decoded_in_pieces_like_short_ones() {
    // 3 rows of 1,000 codes: pieces of 256 begin within bytes, blocks and rows.
    let codes: Vec<u8> = (0..1500).map(|i| (i * 37 % 251) as u8).collect();
    let scales: Vec<f32> = (0..3 * 8).map(|i| 0.25 + i as f32).collect();
    let affine = affine(DType::Int4, &[3, 8], &scales, Some(1), Some(130));
    let ty = logical(DType::Float, &[3, 1000]);
    affine.check(&ty).unwrap();
    let mut out = vec![0.0; 3000];
    affine.decode_range(&ty, &codes, 0..3000, &mut out).unwrap();
    for (i, actual) in out.iter().enumerate() {
        let code = heirloom_types::bits::sign_extend(u64::from(codes[i / 2] >> (i % 2 * 4) & 15), 4);
        assert_eq!(*actual, code as f32 * scales[i / 1000 * 8 + i % 1000 / 130]);
    }
    let mut back = vec![0; 1500];
    affine.encode(&ty, &out, &mut back).unwrap();
    assert_eq!(back, codes);
}

// proves: A1
#[test]
fn only_six_storage_types_exist() {
    let ty = logical(DType::Float, &[2]);
    for dtype in DType::ALL {
        let allowed = [DType::Int8, DType::Uint8, DType::Int4, DType::Uint4, DType::Int2, DType::Uint2];
        let result = affine(dtype, &[], &[1.0], None, None).check(&ty);
        assert_eq!(result.is_ok(), allowed.contains(&dtype), "{dtype}: {result:?}");
    }
}

// proves: A3, A6
#[test]
fn scales_and_logical_types_outside_the_closed_set_are_refused() {
    for dtype in DType::ALL {
        let mut layout = affine(DType::Int8, &[], &[1.0], None, None);
        let ok = |result: Result<(), AffineError>| result.is_ok();
        let logical_type = logical(dtype, &[2]);
        let floats = [DType::Float, DType::Float16, DType::BFloat16];
        assert_eq!(ok(layout.check(&logical_type)), floats.contains(&dtype), "{dtype}");
        let Some(width) = dtype.payload_bytes(1) else { continue };
        layout.scale = Tensor::new(dtype, &[], bytes(&vec![0; width])).unwrap();
        let scale = floats.contains(&dtype) || dtype == DType::Float8E8M0;
        assert_eq!(ok(layout.check(&logical(DType::Float, &[2]))), scale, "{dtype}");
    }
}

// proves: A4
#[test]
fn shapes_of_scales_and_zero_points_follow_quantize_linear() {
    let ty = logical(DType::Float, &[2, 7]);
    let check = |shape: &[usize], axis, block| {
        let count = shape.iter().product();
        affine(DType::Int4, shape, &vec![1.0; count], axis, block).check(&ty)
    };
    assert_eq!(check(&[], None, None), Ok(()));
    assert!(matches!(check(&[1], None, None), Err(AffineError::ScaleShape { .. })));
    assert_eq!(check(&[7], Some(1), None), Ok(()));
    assert!(matches!(check(&[2], Some(1), None), Err(AffineError::ScaleShape { .. })));
    assert!(matches!(check(&[], Some(1), None), Err(AffineError::ScaleShape { .. })));
    assert!(matches!(check(&[2], Some(2), None), Err(AffineError::Axis { axis: 2, rank: 2 })));
    assert!(matches!(check(&[], None, Some(4)), Err(AffineError::BlockWithoutAxis)));
    assert!(matches!(check(&[2, 2], Some(1), Some(0)), Err(AffineError::BlockOfNothing)));
    // Two blocks of 7 elements: sizes 4 to 6.
    for size in 1..=8 {
        assert_eq!(check(&[2, 2], Some(1), Some(size)).is_ok(), (4..=6).contains(&size), "{size}");
    }
    // One block: any size from 7 on. Seven blocks: size 1 alone.
    assert!(check(&[2, 1], Some(1), Some(6)).is_err() && check(&[2, 1], Some(1), Some(7000)).is_ok());
    assert!(check(&[2, 7], Some(1), Some(1)).is_ok() && check(&[2, 7], Some(1), Some(2)).is_err());
    // No size gives 5 blocks of 7 elements.
    let error = check(&[2, 5], Some(1), Some(2)).unwrap_err();
    assert!(error.to_string().contains("no size does"), "{error}");
    assert!(check(&[2, 0], Some(1), Some(4)).is_err());
    assert!(check(&[1, 2], Some(1), Some(4)).is_err());

    let mut with_zero = affine(DType::Int4, &[2, 2], &[1.0; 4], Some(1), Some(4));
    let zero = |dtype, shape: &[usize], data: &[u8]| Some(Tensor::new(dtype, shape, bytes(data)).unwrap());
    with_zero.zero_point = zero(DType::Int4, &[2, 2], &[0x21, 0x43]);
    assert_eq!(with_zero.check(&ty), Ok(()));
    with_zero.zero_point = zero(DType::Int4, &[4], &[0x21, 0x43]);
    assert!(matches!(with_zero.check(&ty), Err(AffineError::ZeroPointShape { .. })));
    with_zero.zero_point = zero(DType::Uint4, &[2, 2], &[0x21, 0x43]);
    assert!(matches!(with_zero.check(&ty), Err(AffineError::ZeroPointType { .. })));
}

#[test]
fn a_tensor_without_elements_needs_no_codes() {
    for (shape, scales, axis, block) in [
        (&[0, 4][..], &[4][..], Some(1), None),
        (&[0], &[0], Some(0), Some(3)),
        (&[0], &[1], Some(0), Some(3)),
        (&[2, 0], &[2, 0], Some(1), Some(4)),
    ] {
        let count = scales.iter().product();
        let layout = affine(DType::Uint2, scales, &vec![1.0; count], axis, block);
        let ty = logical(DType::Float, shape);
        layout.check(&ty).unwrap();
        layout.decode_range(&ty, &[], 0..0, &mut []).unwrap();
        layout.encode(&ty, &[], &mut []).unwrap();
    }
}

#[test]
fn parts_outside_the_value_are_refused() {
    let layout = affine(DType::Uint4, &[], &[1.0], None, None);
    let ty = logical(DType::Float, &[5]);
    let mut out = [0.0; 5];
    assert!(layout.decode_range(&ty, &[0, 0, 0], 0..5, &mut out).is_ok());
    assert!(matches!(layout.decode_range(&ty, &[0, 0], 0..5, &mut out), Err(CodecError::Range { .. })));
    assert!(matches!(layout.decode_range(&ty, &[0; 3], 1..6, &mut out), Err(CodecError::Range { .. })));
    assert!(matches!(layout.decode_range(&ty, &[0; 3], 1..5, &mut out), Err(CodecError::Elements { .. })));
    let overflowing = layout.decode_rows(&ty, &[0; 3], usize::MAX - 1..usize::MAX, &mut out[..1]);
    assert!(matches!(overflowing, Err(CodecError::Range { .. })));
}

// proves: GB4
#[test]
fn layouts_are_equal_when_equal_bytes_mean_the_same() {
    let base = || affine(DType::Int4, &[2], &[1.0, 2.0], Some(0), None);
    let layout = |affine| Layout::Affine(Arc::new(affine));
    assert_eq!(layout(base()), layout(base()));
    let with_zero =
        Affine { zero_point: Some(Tensor::new(DType::Int4, &[2], bytes(&[0])).unwrap()), ..base() };
    let others = [
        affine(DType::Uint4, &[2], &[1.0, 2.0], Some(0), None),
        affine(DType::Int4, &[2], &[1.0, 2.5], Some(0), None),
        affine(DType::Int4, &[2], &[1.0, 2.0], Some(1), None),
        with_zero,
    ];
    for other in others {
        assert_ne!(layout(base()), layout(other));
    }
}
