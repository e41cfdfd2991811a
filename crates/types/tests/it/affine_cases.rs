//! Recorded cases of DequantizeLinear and QuantizeLinear: what `fixtures/affine.py` writes.

use std::sync::Arc;

use heirloom_mem::{Bytes, DType, Ledger, Shape, Tensor};
use heirloom_types::{Affine, DequantizeLinear, EncodedValue, Layout, TensorType};

use crate::fixture::Fixture;

/// The elements of a FLOAT, FLOAT16 or BFLOAT16 tensor's bytes.
fn widened(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    match dtype {
        DType::Float => bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect(),
        DType::Float16 => {
            bytes.chunks(2).map(|b| half::f16::from_le_bytes(b.try_into().unwrap()).to_f32()).collect()
        }
        _ => bytes.chunks(2).map(|b| half::bf16::from_le_bytes(b.try_into().unwrap()).to_f32()).collect(),
    }
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Compares each case to the bit; how many there are, and how many of them are quantized too.
pub(crate) fn compare(file: &[u8]) -> (u32, u32) {
    let mut fixture = Fixture::new(file);
    let (cases, mut quantized) = (fixture.u32(), 0);
    for case in 0..cases {
        let [storage, scale_type, logical_type] =
            std::array::from_fn(|_| DType::from_onnx(i32::from(fixture.u8())).unwrap());
        let flags = fixture.u8();
        let axis = fixture.u32().cast_signed();
        let block = fixture.usize();
        let rank = fixture.usize();
        let shape: Shape = (0..rank).map(|_| fixture.usize()).collect();
        let [scale, zero, codes, decoded, values, encoded] = std::array::from_fn(|_| fixture.sized());

        let axis = (flags & 2 != 0).then(|| (axis + if axis < 0 { rank as i32 } else { 0 }) as usize);
        let block_size = (flags & 4 != 0).then_some(block);
        let scale_shape: Shape = match (axis, block_size) {
            (None, _) => Shape::new(),
            (Some(axis), None) => Shape::from_slice(&[shape[axis]]),
            (Some(axis), Some(size)) => {
                let blocks = |(i, d): (usize, &usize)| if i == axis { d.div_ceil(size) } else { *d };
                shape.iter().enumerate().map(blocks).collect()
            }
        };
        let tensor =
            |dtype, data: &[u8]| Tensor::new(dtype, &scale_shape, Bytes::from_vec(data.to_vec())).unwrap();
        let zero_point = (flags & 1 != 0).then(|| tensor(storage, zero));
        let affine = Affine { storage, scale: tensor(scale_type, scale), zero_point, axis, block_size };
        let logical = TensorType { dtype: logical_type, shape: shape.clone() };
        let about =
            format!("case {case}: {storage} {scale_type} {logical_type} {shape:?} {axis:?} {block_size:?}");
        affine.check(&logical).unwrap_or_else(|error| panic!("{about}: {error}"));

        // The operator's own constants give the same layout over the same bytes.
        let codes_tensor = Tensor::new(storage, &shape, Bytes::from_vec(codes.to_vec())).unwrap();
        let operator = DequantizeLinear {
            codes: &codes_tensor,
            scale: &affine.scale,
            zero_point: affine.zero_point.as_ref(),
            axis: axis.map_or(1, |axis| axis as i64 - if case % 2 == 0 { rank as i64 } else { 0 }),
            block_size: block_size.map_or(0, |size| size as i64),
            output: logical_type,
        };
        let taken = operator.to_affine("w").unwrap_or_else(|error| panic!("{about}: {error}"));
        assert_eq!(
            (taken.payload.address(), taken.logical.as_ref()),
            (codes_tensor.address(), Some(&logical))
        );
        let same_layout = taken.layout.as_affine().is_some_and(|taken| **taken == affine);
        // One scale for an axis of one index is one for the tensor.
        assert!(same_layout || affine.scale.len() == 1 && block_size.is_none(), "{about}");

        let expected = widened(logical_type, decoded);
        let mut out = vec![0.0; expected.len()];
        affine.decode_range(&logical, codes, 0..expected.len(), &mut out).unwrap();
        for (i, (a, b)) in out.iter().zip(&expected).enumerate() {
            assert!(same(*a, *b), "{about}: element {i} is {b}, not {a}");
        }
        // Any part decodes to the same numbers.
        for start in 0..expected.len() {
            let end = (start + 1 + start % 7).min(expected.len());
            let part = &mut out[..end - start];
            affine.decode_range(&logical, codes, start..end, part).unwrap();
            assert!(
                part.iter().zip(&expected[start..]).all(|(a, b)| same(*a, *b)),
                "{about}: {start}..{end}"
            );
        }
        // As a value, and as rows.
        let value = EncodedValue {
            name: String::new(),
            layout: Layout::Affine(Arc::new(affine.clone())),
            logical: Some(logical.clone()),
            payload: Bytes::from_vec(codes.to_vec()),
        };
        let tensor = value.decode(None, &Ledger::default()).unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (logical_type, &shape[..]));
        assert!(
            widened(logical_type, tensor.dense_bytes().unwrap())
                .iter()
                .zip(&expected)
                .all(|(a, b)| same(*a, *b))
        );
        // (Rows of nothing have nothing to compare.)
        if expected.is_empty() {
            continue;
        }
        let row = expected.len() / shape[0];
        let mut rows = vec![0.0; row];
        affine.decode_rows(&logical, codes, shape[0] - 1..shape[0], &mut rows).unwrap();
        assert!(rows.iter().zip(&expected[(shape[0] - 1) * row..]).all(|(a, b)| same(*a, *b)), "{about}");

        if !values.is_empty() {
            let mut actual = vec![0xff; encoded.len()];
            affine.encode(&logical, &widened(logical_type, values), &mut actual).unwrap();
            assert_eq!(actual, encoded, "{about}: {:?}", widened(logical_type, values));
            quantized += 1;
        }
    }
    (cases, quantized)
}
