//! Constants of operators as affine values.

use heirloom_mem::{DType, Ledger, Tensor};
use heirloom_types::{AffineError, DequantizeLinear, EncodedValue, NBitWeights, NotAffine, TypeError};

use crate::build::*;

fn tensor_of(dtype: DType, shape: &[usize], data: &[u8]) -> Tensor {
    Tensor::new(dtype, shape, bytes(data)).unwrap()
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape, values.to_vec()).unwrap()
}

fn decoded(value: &EncodedValue) -> Vec<f32> {
    value.decode(None, &Ledger::default()).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn linear<'a>(codes: &'a Tensor, scale: &'a Tensor, axis: i64, block_size: i64) -> DequantizeLinear<'a> {
    DequantizeLinear { codes, scale, zero_point: None, axis, block_size, output: DType::Float }
}

// proves: A7
#[test]
fn dequantize_linear_of_constants_is_an_affine_value_over_the_same_bytes() {
    let codes = tensor_of(DType::Int4, &[2, 3], &[0x21, 0x43, 0x65]);
    let scale = floats(&[3], &[1.0, 10.0, 100.0]);
    // ONNX's axis is 1 where a node does not say.
    let value = linear(&codes, &scale, 1, 0).to_affine("w").unwrap();
    assert_eq!((value.payload.address(), &*value.name), (codes.address(), "w"));
    assert_eq!(decoded(&value), [1.0, 20.0, 300.0, 4.0, 50.0, 600.0]);
    assert_eq!(linear(&codes, &scale, -1, 0).to_affine("w").unwrap().layout, value.layout);
    // One scale as a vector of one, whatever the axis.
    let one = floats(&[1], &[2.0]);
    let value = linear(&codes, &one, 7, 0).to_affine("w").unwrap();
    let layout = value.layout.as_affine().unwrap();
    assert_eq!((layout.axis, layout.scale.shape()), (None, &[][..]));
    assert_eq!(decoded(&value), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let zero = tensor_of(DType::Int4, &[1], &[0x0f]);
    let value = DequantizeLinear { zero_point: Some(&zero), ..linear(&codes, &one, 1, 0) };
    assert_eq!(decoded(&value.to_affine("w").unwrap()), [4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
}

#[test]
fn what_dequantize_linear_alone_can_hold_is_no_affine_value() {
    let scale = floats(&[], &[1.0]);
    let refused = |linear: DequantizeLinear<'_>| linear.to_affine("w").unwrap_err();
    for dtype in [DType::Int16, DType::Uint16] {
        let codes = tensor_of(dtype, &[2], &[0; 4]);
        assert_eq!(refused(linear(&codes, &scale, 1, 0)), NotAffine::Storage { actual: dtype });
    }
    let codes = tensor_of(DType::Float8E4M3FN, &[2], &[0; 2]);
    assert_eq!(
        refused(linear(&codes, &scale, 1, 0)).to_string(),
        "codes of FLOAT8E4M3FN are none of the affine layout"
    );
    let codes = tensor_of(DType::Int8, &[2, 2], &[0; 4]);
    let pair = floats(&[2], &[1.0, 2.0]);
    assert_eq!(
        refused(linear(&codes, &pair, 2, 0)),
        NotAffine::Affine(AffineError::Axis { axis: 2, rank: 2 })
    );
    assert_eq!(
        refused(linear(&codes, &pair, 1, -1)),
        NotAffine::Attribute { attribute: "block_size", value: -1 }
    );
    assert!(matches!(
        refused(linear(&codes, &pair, 1, 2)),
        NotAffine::Affine(AffineError::ScaleShape { .. })
    ));
    let output = DequantizeLinear { output: DType::Double, ..linear(&codes, &scale, 1, 0) };
    assert_eq!(refused(output), NotAffine::Affine(AffineError::LogicalType { actual: DType::Double }));
    let strided = Tensor::strided(DType::Int8, &[2, 2], &[1, 2], bytes(&[0; 4])).unwrap();
    assert_eq!(refused(linear(&strided, &scale, 1, 0)), NotAffine::Gaps { operand: "x" });
    let dirty = tensor_of(DType::Int4, &[3], &[0x21, 0xf3]);
    let error = refused(linear(&dirty, &scale, 0, 0)).to_string();
    assert!(error.contains("unused high bits"), "{error}");
}

/// 3 rows of 5 blocks of 16: rows of zero points end within a byte.
fn weights<'a>(codes: &'a Tensor, scales: &'a Tensor, zero_points: Option<&'a Tensor>) -> NBitWeights<'a> {
    NBitWeights {
        rows: 3,
        columns: 80,
        bits: 4,
        block_size: 16,
        codes,
        scales,
        zero_points,
        output: DType::Float,
    }
}

// proves: A7
#[test]
fn u30_mat_mul_n_bits_packs_zero_points_by_row_and_the_affine_layout_does_not() {
    let data: Vec<u8> = (0..120).map(|i| (i * 37 % 256) as u8).collect();
    let codes = tensor_of(DType::Uint8, &[3, 5, 8], &data);
    let scales: Vec<f32> = (0..15).map(|i| 0.5 + i as f32).collect();
    let scales = floats(&[3, 5], &scales);
    let zero = |row: usize, block: usize| (row * 5 + block + 1) as u8;
    let rows: Vec<u8> = (0..3)
        .flat_map(|row| [zero(row, 0) | zero(row, 1) << 4, zero(row, 2) | zero(row, 3) << 4, zero(row, 4)])
        .collect();
    let packed = tensor_of(DType::Uint8, &[9], &rows);
    let numbers: Vec<f32> =
        (0..3).flat_map(|row| (0..5).map(move |block| f32::from(zero(row, block)))).collect();
    let numbers = floats(&[15], &numbers);
    for zero_points in [&packed, &numbers] {
        let value = weights(&codes, &scales, Some(zero_points)).to_affine("w").unwrap();
        assert_eq!(value.payload.address(), codes.address());
        let affine = value.layout.as_affine().unwrap();
        let zero_point = affine.zero_point.as_ref().unwrap();
        assert_eq!(
            (affine.storage, zero_point.shape(), zero_point.byte_len()),
            (DType::Uint4, &[3, 5][..], 8)
        );
        assert_eq!(zero_point.dense_bytes().unwrap()[2] >> 4, zero(1, 0));
        for (at, actual) in decoded(&value).into_iter().enumerate() {
            let (row, block) = (at / 80, at % 80 / 16);
            let code = data[at / 2] >> (at % 2 * 4) & 15;
            let expected = (f32::from(code) - f32::from(zero(row, block))) * (0.5 + (row * 5 + block) as f32);
            assert_eq!(actual, expected, "row {row}, column {}", at % 80);
        }
    }
    let middle = weights(&codes, &scales, None).to_affine("w").unwrap();
    let first = (f32::from(data[0] & 15) - 8.0) * 0.5;
    assert_eq!(decoded(&middle)[0], first);
}

#[test]
fn weights_of_other_shapes_and_numbers_stay_with_their_operator() {
    let codes = tensor_of(DType::Uint8, &[120], &[0; 120]);
    let scales = floats(&[15], &[1.0; 15]);
    let refused = |weights: NBitWeights<'_>| weights.to_affine("w").unwrap_err();
    let weights = weights(&codes, &scales, None);
    assert_eq!(
        refused(NBitWeights { columns: 79, ..weights }).to_string(),
        "rows of 79 codes end within a block of 16, and are filled up"
    );
    assert_eq!(
        refused(NBitWeights { bits: 3, ..weights }),
        NotAffine::Attribute { attribute: "bits", value: 3 }
    );
    assert_eq!(
        refused(NBitWeights { block_size: 0, ..weights }),
        NotAffine::Attribute { attribute: "block_size", value: 0 }
    );
    assert_eq!(
        refused(NBitWeights { rows: 4, ..weights }).to_string(),
        "`scales` holds 15 numbers, where the attributes need 20"
    );
    assert!(matches!(
        refused(NBitWeights { bits: 8, ..weights }),
        NotAffine::Codes(TypeError::PayloadLength { .. })
    ));
    let short = tensor_of(DType::Uint8, &[8], &[0; 8]);
    assert_eq!(
        refused(NBitWeights { zero_points: Some(&short), ..weights }).to_string(),
        "`zero_points` holds 8 bytes, where the attributes need 9"
    );
    for (number, shown) in [(7.5, "7.5"), (-1.0, "-1"), (16.0, "16"), (f32::NAN, "NaN")] {
        let mut numbers = [0.0; 15];
        numbers[3] = number;
        let numbers = floats(&[15], &numbers);
        let error = refused(NBitWeights { zero_points: Some(&numbers), ..weights });
        assert_eq!(error.to_string(), format!("zero point 3 is {shown}, which is no code"));
    }
    let wide = tensor_of(DType::Int32, &[15], &[0; 60]);
    assert_eq!(
        refused(NBitWeights { zero_points: Some(&wide), ..weights }),
        NotAffine::ZeroPointType { actual: DType::Int32 }
    );
    let float8 = tensor_of(DType::Float8E5M2, &[15], &[0; 15]);
    let error = refused(NBitWeights { scales: &float8, ..weights });
    assert_eq!(error, NotAffine::Affine(AffineError::ScaleType { actual: DType::Float8E5M2 }));
}
