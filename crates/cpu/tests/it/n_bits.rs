//! `MatMulNBits` from its constants' bytes against the portable kernel, on random weights of awkward sizes.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use half::{bf16, f16};
use heirloom_cpu::ClaimTeam;
use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::Tensor;
use heirloom_runtime::{KernelRegistry, NodeCall, NodeInput};

const OP: &str = "com.microsoft.MatMulNBits";

struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 >> 8
    }

    fn real(&mut self) -> f32 {
        self.next() as f32 / 8_388_608.0 - 1.0
    }

    fn reals(&mut self, shape: &[usize]) -> Tensor {
        let len = shape.iter().product();
        Tensor::from_vec(shape, (0..len).map(|_| self.real()).collect()).unwrap()
    }

    fn bytes(&mut self, shape: &[usize]) -> Tensor {
        let len = shape.iter().product();
        Tensor::from_vec(shape, (0..len).map(|_| self.next() as u8).collect()).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Zeros {
    Middle,
    Packed,
    Numbers,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scales {
    Float,
    Float16,
    BFloat16,
}

fn of_type(scales: Scales, values: &Tensor) -> Tensor {
    let list = values.as_slice::<f32>().unwrap().iter();
    match scales {
        Scales::Float => values.clone(),
        Scales::Float16 => {
            Tensor::from_vec(values.shape(), list.map(|&v| f16::from_f32(v)).collect()).unwrap()
        }
        Scales::BFloat16 => {
            Tensor::from_vec(values.shape(), list.map(|&v| bf16::from_f32(v)).collect()).unwrap()
        }
    }
}

/// The largest difference of both kernels over the largest result, with one thread and with two.
fn apart(
    bits: usize,
    block: usize,
    [rows, k, n]: [usize; 3],
    zeros: Zeros,
    scales: Scales,
    bias: bool,
) -> f64 {
    let mut random = Random((bits * 1_000_003 + block * 7919 + k * 31 + n + rows) as u32 | 1);
    let blocks = k.div_ceil(block);
    let x = random.reals(&[1, rows, k]);
    let codes = random.bytes(&[n, blocks, block * bits / 8]);
    let scale = of_type(scales, &random.reals(&[n * blocks]));
    let points = match zeros {
        Zeros::Middle => None,
        Zeros::Packed => Some(random.bytes(&[n, (blocks * bits).div_ceil(8)])),
        Zeros::Numbers => {
            let numbers = (0..n * blocks).map(|_| (random.next() % (1 << bits)) as f32 + 0.25).collect();
            Some(of_type(scales, &Tensor::from_vec(&[n * blocks], numbers).unwrap()))
        }
    };
    let bias = bias.then(|| random.reals(&[n]));
    let constant = |tensor: Option<Tensor>| match tensor {
        None => NodeInput::Absent,
        Some(tensor) => NodeInput::Constant(tensor.into()),
    };
    let inputs = vec![
        NodeInput::Fed,
        constant(Some(codes)),
        constant(Some(scale)),
        constant(points),
        NodeInput::Absent,
        constant(bias),
    ];
    let attributes: Attributes = [("K", k), ("N", n), ("bits", bits), ("block_size", block)]
        .map(|(name, value)| (name.to_string(), AttrValue::Int(value as i64)))
        .into_iter()
        .collect();
    let portable = KernelRegistry::new().with(heirloom_ops::KERNELS.iter().copied());
    let fast = portable.clone().with(heirloom_cpu::KERNELS.iter().copied());
    let run = |registry: &KernelRegistry, threads: usize| {
        let call = NodeCall::new(registry, OP, 1, attributes.clone(), inputs.clone(), 1).unwrap();
        let mut call = call.team(Arc::new(ClaimTeam::new(threads)));
        let results = call.run([x.clone()]).unwrap();
        let counts = call.counts();
        let copied = counts.kernel_copied_bytes + counts.state_copied_bytes + counts.cache_copied_bytes;
        assert_eq!(copied, 0, "{copied} bytes of payload were copied");
        let result = results[0].as_tensor().unwrap();
        assert_eq!(result.shape(), [1, rows, n]);
        result.as_slice::<f32>().unwrap().to_vec()
    };
    let expected = run(&portable, 1);
    let peak = expected.iter().fold(0.0f32, |peak, v| peak.max(v.abs()));
    let differences = [1, 2].map(|threads| {
        let actual = run(&fast, threads);
        let pairs = actual.iter().zip(&expected);
        pairs.fold(0.0, |most: f64, (a, e)| most.max(f64::from((a - e).abs())))
    });
    differences[0].max(differences[1]) / f64::from(peak)
}

#[test]
fn products_from_the_bytes_of_the_constants_agree_with_the_portable_kernel() {
    use Scales::{BFloat16, Float, Float16};
    let mut quick = 0;
    for bits in [2, 4, 8] {
        for (block, k) in
            [(16, 48), (32, 32), (32, 288), (32, 300), (64, 520), (128, 640), (256, 512), (512, 700)]
        {
            for zeros in [Zeros::Middle, Zeros::Packed, Zeros::Numbers] {
                for (rows, n, scales) in
                    [(1, 7, Float), (2, 33, Float16), (3, 5, BFloat16), (7, 18, Float), (40, 21, Float)]
                {
                    let apart = apart(bits, block, [rows, k, n], zeros, scales, rows % 2 == 1);
                    // Activations of the quick products have 14 bits.
                    quick += usize::from(apart > 1e-6);
                    let place =
                        format!("{bits} bits, blocks of {block}, {rows} x {k} x {n}, {zeros:?}, {scales:?}");
                    assert!(apart < 3e-4, "{place}: {apart}");
                }
            }
        }
    }
    assert!(quick > 100, "{quick}");
}
