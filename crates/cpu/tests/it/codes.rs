//! Kernels of 8-bit codes against the portable ones.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use heirloom_cpu::ClaimTeam;
use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{KernelRegistry, NodeCall, NodeInput};
use heirloom_types::Value;

fn random(len: usize, seed: u32) -> impl Iterator<Item = u32> {
    let mut word = seed.wrapping_mul(2_654_435_761) | 1;
    (0..len).map(move |_| {
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        word >> 8
    })
}

fn floats(shape: &[usize], seed: u32) -> Tensor {
    let len = shape.iter().product();
    Tensor::from_vec(shape, random(len, seed).map(|w| w as f32 / 8_388_608.0 - 1.0).collect()).unwrap()
}

fn codes(signed: bool, shape: &[usize], seed: u32) -> Tensor {
    let len = shape.iter().product();
    match signed {
        false => Tensor::from_vec(shape, random(len, seed).map(|w| w as u8).collect()).unwrap(),
        true => Tensor::from_vec(shape, random(len, seed).map(|w| w as i8).collect()).unwrap(),
    }
}

/// What both kernels give: the portable one, and the fast one with each of these numbers of threads.
fn both(
    op: &str,
    opset: i64,
    list: &[(&str, AttrValue)],
    inputs: &[Option<(Tensor, bool)>],
    outputs: usize,
) -> (Vec<Value>, Vec<Vec<Value>>) {
    let attributes =
        || -> Attributes { list.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect() };
    let given = || -> Vec<NodeInput> {
        let input = |input: &Option<(Tensor, bool)>| match input {
            None => NodeInput::Absent,
            Some((tensor, true)) => NodeInput::Constant(tensor.clone().into()),
            Some((_, false)) => NodeInput::Fed,
        };
        inputs.iter().map(input).collect()
    };
    let fed = || -> Vec<Value> {
        let fed = |input: &Option<(Tensor, bool)>| match input {
            Some((tensor, false)) => Some(tensor.clone().into()),
            _ => None,
        };
        inputs.iter().filter_map(fed).collect()
    };
    let portable = KernelRegistry::new().with(heirloom_ops::KERNELS.iter().copied());
    let fast = portable.clone().with(heirloom_cpu::KERNELS.iter().copied());
    let expected =
        NodeCall::new(&portable, op, opset, attributes(), given(), outputs).unwrap().run(fed()).unwrap();
    let actual = [1, 2].map(|threads| {
        let call = NodeCall::new(&fast, op, opset, attributes(), given(), outputs).unwrap();
        call.team(Arc::new(ClaimTeam::new(threads))).run(fed()).unwrap()
    });
    (expected.into_iter().collect(), actual.map(|a| a.into_iter().collect()).into())
}

fn same_bits(expected: &[Value], actual: &[Vec<Value>]) {
    for actual in actual {
        for (actual, expected) in actual.iter().zip(expected) {
            let (a, e) = (actual.as_tensor().unwrap(), expected.as_tensor().unwrap());
            assert_eq!((a.shape(), a.dtype()), (e.shape(), e.dtype()));
            assert_eq!(a.dense_bytes(), e.dense_bytes());
        }
    }
}

#[test]
fn integer_products_equal_the_portable_kernels() {
    for (a_signed, b_signed) in [(false, false), (false, true), (true, false), (true, true)] {
        for (shape, k, n) in [(&[1usize, 300][..], 300, 70), (&[2, 3, 17], 17, 16), (&[257, 64], 64, 129)] {
            let a = Some((codes(a_signed, shape, 1), false));
            let b = Some((codes(b_signed, &[k, n], 2), true));
            for zero in [None, Some(&[][..]), Some(&[n][..])] {
                let a_zero = zero.map(|_| (codes(a_signed, &[], 3), false));
                let b_zero = zero.map(|shape| (codes(b_signed, shape, 4), true));
                let (expected, actual) =
                    both("MatMulInteger", 10, &[], &[a.clone(), b.clone(), a_zero, b_zero], 1);
                same_bits(&expected, &actual);
            }
        }
    }
}

#[test]
fn dynamic_quantization_equals_the_portable_kernels() {
    let special = |v: f32| Tensor::from_vec(&[40], vec![v; 40]).unwrap();
    let mut inputs =
        vec![floats(&[3, 7], 5), floats(&[1, 40_001], 6), special(0.0), special(3.0), special(-2.0)];
    // Numbers that are not finite, and next to nothing.
    inputs.extend([special(f32::INFINITY), special(1e-44), floats(&[0], 1)]);
    for x in inputs {
        let (expected, actual) = both("DynamicQuantizeLinear", 11, &[], &[Some((x, false))], 3);
        same_bits(&expected, &actual);
    }
}

#[test]
fn quantized_lstm_layers_agree_with_the_portable_kernel() {
    let (steps, batch, input, hidden) = (5, 2, 19, 21);
    for (direction, directions) in [("forward", 1), ("bidirectional", 2)] {
        for signed in [false, true] {
            let scales = |seed| {
                let scale = |w: u32| 0.001 + (w % 100) as f32 * 1e-5;
                Tensor::from_vec(&[directions], random(directions, seed).map(scale).collect()).unwrap()
            };
            let constant = |tensor: Tensor| Some((tensor, true));
            let inputs = [
                Some((floats(&[steps, batch, input], 1), false)),
                constant(codes(signed, &[directions, input, 4 * hidden], 2)),
                constant(codes(signed, &[directions, hidden, 4 * hidden], 3)),
                constant(floats(&[directions, 8 * hidden], 4)),
                None,
                Some((floats(&[directions, batch, hidden], 5), false)),
                Some((floats(&[directions, batch, hidden], 6), false)),
                None,
                constant(scales(7)),
                constant(codes(signed, &[directions], 8)),
                constant(scales(9)),
                constant(codes(signed, &[directions], 10)),
            ];
            let list = [
                ("hidden_size", AttrValue::Int(hidden as i64)),
                ("direction", AttrValue::String(direction.as_bytes().into())),
            ];
            let (expected, actual) = both("com.microsoft.DynamicQuantizeLSTM", 1, &list, &inputs, 3);
            for actual in &actual {
                for (actual, expected) in actual.iter().zip(&expected) {
                    let (a, e) = (actual.as_tensor().unwrap(), expected.as_tensor().unwrap());
                    assert_eq!((a.shape(), a.dtype()), (e.shape(), DType::Float));
                    for (a, e) in a.as_slice::<f32>().unwrap().iter().zip(e.as_slice::<f32>().unwrap()) {
                        assert!((a - e).abs() <= 1e-5, "{a}, not {e}");
                    }
                }
            }
        }
    }
}
