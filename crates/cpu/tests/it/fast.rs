//! Kernels of FLOAT tensors against the portable ones, on random inputs of awkward sizes, with one thread and with two.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use heirloom_cpu::ClaimTeam;
use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::Tensor;
use heirloom_runtime::{KernelRegistry, NodeCall, NodeInput};
use heirloom_types::Value;

/// Numbers within -1..1.
fn noise(shape: &[usize], seed: u32) -> Tensor {
    let mut word = seed.wrapping_mul(2_654_435_761) | 1;
    let len = shape.iter().product();
    let next = |_| {
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        (word >> 8) as f32 / 8_388_608.0 - 1.0
    };
    Tensor::from_vec(shape, (0..len).map(next).collect()).unwrap()
}

fn attributes(list: &[(&str, AttrValue)]) -> Attributes {
    list.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect()
}

/// Runs both kernels on inputs of these shapes, those in `constant` as constants, and compares all outputs.
fn agree(
    op: &str,
    opset: i64,
    list: &[(&str, AttrValue)],
    shapes: &[Option<&[usize]>],
    constant: &[usize],
    outputs: usize,
) {
    let values: Vec<Option<Tensor>> =
        shapes.iter().enumerate().map(|(i, s)| s.map(|s| noise(s, i as u32 + 7))).collect();
    let inputs = || -> Vec<NodeInput> {
        let input = |(i, v): (usize, &Option<Tensor>)| match v {
            None => NodeInput::Absent,
            Some(v) if constant.contains(&i) => NodeInput::Constant(v.clone().into()),
            Some(_) => NodeInput::Fed,
        };
        values.iter().enumerate().map(input).collect()
    };
    let fed = || -> Vec<Value> {
        let is_fed =
            |(i, v): (usize, &Option<Tensor>)| v.clone().filter(|_| !constant.contains(&i)).map(Value::from);
        values.iter().enumerate().filter_map(is_fed).collect()
    };
    let portable = KernelRegistry::new().with(heirloom_ops::KERNELS.iter().copied());
    let fast = portable.clone().with(heirloom_cpu::KERNELS.iter().copied());
    let expected =
        NodeCall::new(&portable, op, opset, attributes(list), inputs(), outputs).unwrap().run(fed()).unwrap();
    for threads in [1, 2] {
        let call = NodeCall::new(&fast, op, opset, attributes(list), inputs(), outputs).unwrap();
        let actual = call.team(Arc::new(ClaimTeam::new(threads))).run(fed()).unwrap();
        for (actual, expected) in actual.iter().zip(&expected) {
            let (a, e) = (actual.as_tensor().unwrap(), expected.as_tensor().unwrap());
            assert_eq!(a.shape(), e.shape(), "{op} {shapes:?}");
            for (at, (a, e)) in
                a.as_slice::<f32>().unwrap().iter().zip(e.as_slice::<f32>().unwrap()).enumerate()
            {
                assert!(
                    (a - e).abs() <= 2e-5 * (1.0 + e.abs()),
                    "{op} {shapes:?}, {threads} threads, [{at}]: {a}, not {e}"
                );
            }
        }
    }
}

fn ints(list: &[i64]) -> AttrValue {
    AttrValue::Ints(list.to_vec())
}

#[test]
fn convolutions_of_all_kinds_agree_with_the_portable_kernel() {
    let group = |g| ("group", AttrValue::Int(g));
    // Many places and few; windows, strides, dilations, uneven padding; groups; depthwise; one to three dimensions.
    agree(
        "Conv",
        11,
        &[("pads", ints(&[1, 1, 1, 1]))],
        &[Some(&[2, 3, 13, 17]), Some(&[7, 3, 3, 3]), Some(&[7])],
        &[1, 2],
        1,
    );
    agree(
        "Conv",
        11,
        &[("strides", ints(&[2, 3])), ("dilations", ints(&[2, 1])), ("pads", ints(&[0, 2, 3, 1]))],
        &[Some(&[1, 5, 20, 19]), Some(&[9, 5, 3, 4])],
        &[1],
        1,
    );
    agree("Conv", 11, &[group(2)], &[Some(&[1, 6, 9, 9]), Some(&[8, 3, 1, 1]), Some(&[8])], &[], 1);
    agree("Conv", 11, &[], &[Some(&[1, 70, 12, 12]), Some(&[33, 70, 1, 1])], &[], 1);
    agree("Conv", 11, &[], &[Some(&[1, 300, 3, 3]), Some(&[31, 300, 3, 3]), Some(&[31])], &[], 1);
    agree(
        "Conv",
        11,
        &[group(5), ("pads", ints(&[1, 2, 1, 2])), ("strides", ints(&[2, 2]))],
        &[Some(&[2, 5, 21, 38]), Some(&[5, 1, 3, 5]), Some(&[5])],
        &[],
        1,
    );
    agree(
        "Conv",
        11,
        &[group(4), ("dilations", ints(&[3])), ("pads", ints(&[4, 2]))],
        &[Some(&[1, 4, 77]), Some(&[4, 1, 3])],
        &[],
        1,
    );
    agree(
        "Conv",
        11,
        &[("pads", ints(&[0, 1, 1, 1, 1, 0]))],
        &[Some(&[1, 2, 5, 6, 7]), Some(&[3, 2, 2, 3, 2])],
        &[],
        1,
    );
}

#[test]
fn transposed_convolutions_agree_with_the_portable_kernel() {
    let strides = |list: &[i64]| ("strides", ints(list));
    // Windows side by side, over each other and apart; padding that is cut off; groups; outputs of a given shape.
    type Case<'a> = (&'a [(&'a str, AttrValue)], &'a [usize], &'a [usize]);
    let cases: &[Case<'_>] = &[
        (&[strides(&[2, 2])], &[1, 24, 20, 21], &[24, 5, 2, 2]),
        (&[strides(&[1, 2]), ("pads", ints(&[0, 1, 0, 1]))], &[2, 3, 4, 17], &[3, 2, 1, 5]),
        (
            &[strides(&[3, 1]), ("dilations", ints(&[2, 2])), ("pads", ints(&[1, 0, 2, 3]))],
            &[1, 4, 5, 6],
            &[4, 3, 2, 3],
        ),
        (&[("group", AttrValue::Int(2)), strides(&[2])], &[1, 6, 9], &[6, 2, 3]),
        (&[strides(&[3, 3]), ("output_shape", ints(&[1, 2, 10, 12]))], &[1, 3, 3, 3], &[3, 2, 3, 3]),
        (&[strides(&[4, 4]), ("output_padding", ints(&[1, 2]))], &[1, 3, 3, 3], &[3, 2, 2, 3]),
    ];
    for &(list, x, w) in cases {
        let groups = if list.iter().any(|(name, _)| *name == "group") { 2 } else { 1 };
        agree("ConvTranspose", 11, list, &[Some(x), Some(w), Some(&[w[1] * groups])], &[1, 2], 1);
        agree("ConvTranspose", 11, list, &[Some(x), Some(w)], &[], 1);
    }
}

#[test]
fn products_agree_with_the_portable_kernel() {
    for (m, k, n) in [(1, 40, 70), (2, 300, 33), (3, 7, 129), (5, 257, 16), (13, 512, 31), (40, 64, 200)] {
        agree("MatMul", 13, &[], &[Some(&[m, k]), Some(&[k, n])], &[1], 1);
        agree("MatMul", 13, &[], &[Some(&[2, 3, m, k]), Some(&[3, k, n])], &[], 1);
        agree("Gemm", 13, &[], &[Some(&[m, k]), Some(&[k, n]), Some(&[n])], &[], 1);
        agree(
            "Gemm",
            13,
            &[("transB", AttrValue::Int(1))],
            &[Some(&[m, k]), Some(&[n, k]), Some(&[m, 1])],
            &[],
            1,
        );
    }
}

#[test]
fn recurrent_layers_agree_with_the_portable_kernel() {
    let both = ("direction", AttrValue::String(Box::from(&b"bidirectional"[..])));
    for after in [0, 1] {
        let list = [("linear_before_reset", AttrValue::Int(after)), both.clone()];
        agree(
            "GRU",
            14,
            &list,
            &[
                Some(&[6, 2, 11]),
                Some(&[2, 39, 11]),
                Some(&[2, 39, 13]),
                Some(&[2, 78]),
                None,
                Some(&[2, 2, 13]),
            ],
            &[1, 2],
            2,
        );
    }
    let shapes: [Option<&[usize]>; 8] = [
        Some(&[5, 3, 9]),
        Some(&[2, 68, 9]),
        Some(&[2, 68, 17]),
        Some(&[2, 136]),
        None,
        Some(&[2, 3, 17]),
        Some(&[2, 3, 17]),
        Some(&[2, 51]),
    ];
    agree("LSTM", 14, &[both], &shapes, &[1, 2], 3);
    agree("LSTM", 14, &[], &[Some(&[1, 1, 4]), Some(&[1, 32, 4]), Some(&[1, 32, 8])], &[], 3);
}

#[test]
fn pools_norms_and_activations_agree_with_the_portable_kernel() {
    let window = [("kernel_shape", ints(&[3, 2])), ("strides", ints(&[2, 1])), ("pads", ints(&[1, 0, 1, 1]))];
    agree("MaxPool", 12, &window, &[Some(&[2, 3, 9, 11])], &[], 1);
    agree("AveragePool", 11, &window, &[Some(&[2, 3, 9, 11])], &[], 1);
    agree(
        "AveragePool",
        11,
        &[&window[..], &[("count_include_pad", AttrValue::Int(1))]].concat(),
        &[Some(&[2, 3, 9, 11])],
        &[],
        1,
    );
    agree("GlobalAveragePool", 1, &[], &[Some(&[2, 3, 7, 9])], &[], 1);
    agree("LayerNormalization", 17, &[], &[Some(&[4, 5, 37]), Some(&[37]), Some(&[37])], &[], 1);
    agree("Softmax", 13, &[], &[Some(&[3, 5, 43])], &[], 1);
    for op in ["Tanh", "Erf", "Sigmoid", "Relu", "LeakyRelu", "HardSigmoid", "HardSwish"] {
        agree(op, 14, &[], &[Some(&[3, 57])], &[], 1);
    }
    for approximate in ["none", "tanh"] {
        let attribute = AttrValue::String(approximate.as_bytes().into());
        agree("Gelu", 20, &[("approximate", attribute)], &[Some(&[3, 57])], &[], 1);
    }
}

#[test]
fn codes_with_a_scale_for_each_column_are_dequantized_to_the_bit() {
    // More codes than one task takes.
    let (rows, columns) = (700usize, 37usize);
    let codes: Vec<u8> = (0..rows * columns).map(|at| (at * 7 % 256) as u8).collect();
    let scales: Vec<f32> = (0..columns).map(|at| 0.5 + at as f32).collect();
    let zeros: Vec<u8> = (0..columns).map(|at| (at * 11 % 256) as u8).collect();
    let expected: Vec<f32> = codes
        .iter()
        .enumerate()
        .map(|(at, &code)| (f32::from(code) - f32::from(zeros[at % columns])) * scales[at % columns])
        .collect();
    let inputs = [
        Tensor::from_vec(&[rows, columns], codes).unwrap(),
        Tensor::from_vec(&[columns], scales).unwrap(),
        Tensor::from_vec(&[columns], zeros).unwrap(),
    ];
    let registry = KernelRegistry::new()
        .with(heirloom_ops::KERNELS.iter().copied())
        .with(heirloom_cpu::KERNELS.iter().copied());
    let fed = vec![NodeInput::Fed; 3];
    let call = NodeCall::new(&registry, "DequantizeLinear", 13, Attributes::default(), fed, 1).unwrap();
    let out = call.team(Arc::new(ClaimTeam::new(2))).run(inputs.map(Value::from)).unwrap();
    assert_eq!(out[0].as_tensor().unwrap().as_slice::<f32>().unwrap(), expected);
}
