//! `DynamicQuantizeLSTM`: products of codes, one direction after the other. With AVX-512 as integers; at other levels the
//! codes of weights are FLOAT panels.
#![allow(unsafe_code)]

use heirloom_mem::DType;
use heirloom_ops::recurrent::{Activation, Extents, Recurrent, per_direction_f32};
use heirloom_runtime::{Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use crate::fallback::{Portable, are_float};
use crate::gemm::{Product, Right, Start, panel_floats};
#[cfg(target_arch = "x86_64")]
use crate::integers::dots;
use crate::integers::floats::Shifted;
use crate::integers::integer;
use crate::integers::quantize::Scale;
use crate::lanes::{self, for_level};
use crate::panels::{Held, Panels};

const DEFAULTS: [Activation; 3] = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];

/// com.microsoft's `DynamicQuantizeLSTM` with the usual activations.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "DynamicQuantizeLSTM",
    versions: (1, 1),
    rank: 10,
    accepts: |cx| {
        let constant = |index: usize| matches!(cx.constant(index), Some(Value::Tensor(_)));
        cx.plain_inputs()
            && [1, 2, 8, 9, 10, 11].into_iter().all(constant)
            && cx.node.attributes.int_or("input_forget", 0).is_ok_and(|coupled| coupled == 0)
            && Recurrent::parse(cx, &DEFAULTS).is_ok_and(|node| {
                let usual = |(functions, _): &(Vec<Activation>, bool)| functions == &DEFAULTS;
                node.clip.is_none() && !node.batch_first && node.directions.iter().all(usual)
            })
    },
    build: |cx| {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        let node = Recurrent::parse(cx, &DEFAULTS)?;
        Ok(Box::new(QuantizedLstm { node, isa, portable, w: Way::new(isa, 1), r: Way::new(isa, 2) }))
    },
};

struct QuantizedLstm {
    node: Recurrent,
    isa: Isa,
    portable: Portable,
    w: Way,
    r: Way,
}

/// How products with a weight are computed.
enum Way {
    #[cfg(target_arch = "x86_64")]
    Integers(heirloom_simd::Avx512, dots::CodePanels),
    Floats(Isa, Panels),
}

impl Way {
    fn new(isa: Isa, input: usize) -> Way {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(token) => Way::Integers(token, dots::CodePanels::of(input)),
            _ => Way::Floats(isa, Panels::of(input)),
        }
    }
}

/// A weight in the form that products read.
enum Weight {
    #[cfg(target_arch = "x86_64")]
    Integers(heirloom_simd::Avx512, dots::Held),
    Floats(Isa, Held),
}

/// A weight's codes and what they stand for: one scale and zero point for each direction.
struct Coded {
    scales: Vec<f32>,
    zeros: Vec<i32>,
    signed: bool,
    weight: Weight,
    rows: usize,
    width: usize,
}

/// UINT8 codes of inputs or states, and what they stand for.
struct Input<'a> {
    codes: &'a [u8],
    zero: u8,
}

impl Coded {
    fn read(cx: &RunCx<'_>, way: &Way, index: usize, scale: usize) -> Result<Option<Coded>, KernelError> {
        let tensor = cx.dense(index)?;
        let (scales, zeros) = (cx.dense(scale)?, cx.dense(scale + 1)?);
        let &[directions, rows, width] = tensor.shape() else { return Ok(None) };
        let signed = tensor.dtype() == DType::Int8;
        let bytes_alike = signed || tensor.dtype() == DType::Uint8;
        if !bytes_alike
            || scales.len() != directions
            || zeros.len() != directions
            || zeros.dtype() != tensor.dtype()
        {
            return Ok(None);
        }
        let (bytes, zeros) = (tensor.dense_bytes().unwrap_or(&[]), zeros.dense_bytes().unwrap_or(&[]));
        let zeros: Vec<i32> = zeros.iter().map(|&zero| integer(zero, signed)).collect();
        let weight = match way {
            #[cfg(target_arch = "x86_64")]
            Way::Integers(token, panels) => {
                Weight::Integers(*token, panels.get(cx, bytes, signed, directions, (rows, width))?)
            }
            Way::Floats(isa, panels) => {
                let held = panels.get(cx, directions, (rows, width), |d| {
                    let bytes = &bytes[d * rows * width..][..rows * width];
                    Box::new(Shifted { bytes, signed, zero: zeros[d], n: width, first: 0, rows })
                })?;
                Weight::Floats(*isa, held)
            }
        };
        Ok(Some(Coded { scales: Vec::from(scales.as_slice::<f32>()?), zeros, signed, weight, rows, width }))
    }

    /// The sums of products of codes [m, rows] with a direction's weight.
    fn multiply(
        &self,
        cx: &RunCx<'_>,
        direction: usize,
        input: &Input<'_>,
        out: &mut [i32],
    ) -> Result<(), KernelError> {
        let (k, n) = (self.rows, self.width);
        match &self.weight {
            #[cfg(target_arch = "x86_64")]
            Weight::Integers(token, held) => {
                let left = dots::Left::new(input.codes, false, k);
                let right = held.matrix(direction, self.signed, k, n);
                let (left, right) =
                    ((&left, i32::from(input.zero)), (right, &self.zeros[direction..=direction]));
                dots::multiply(*token, left, right, out, cx.team(), cx.cancel())?;
            }
            Weight::Floats(isa, held) => {
                let each = panel_floats(k, n);
                let b = Right::Packed(&held.floats()[direction * each..][..each]);
                let m = input.codes.len() / k.max(1);
                let zero = f32::from(input.zero);
                let codes: Vec<f32> = input.codes.iter().map(|&c| f32::from(c) - zero).collect();
                let mut sums = vec![0.0; m * n];
                let product =
                    Product { isa: *isa, m, n, k, a: &codes, lda: k, b, start: Start::Zero, ldo: n };
                product.run(&mut sums, cx.team(), cx.cancel())?;
                out.iter_mut().zip(sums).for_each(|(o, s)| *o = s as i32);
            }
        }
        Ok(())
    }
}

impl Kernel for QuantizedLstm {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        for (index, way) in [(1, &mut self.w), (2, &mut self.r)] {
            let zeros = cx.constant(if index == 1 { 9 } else { 11 }).and_then(Value::as_tensor);
            let zeros: Vec<u64> = zeros
                .and_then(|t| t.dense_bytes())
                .unwrap_or(&[])
                .iter()
                .map(|&byte| u64::from(byte))
                .collect();
            if let Some(Value::Tensor(tensor)) = cx.constant(index)
                && let &[directions, rows, width] = tensor.shape()
            {
                match way {
                    #[cfg(target_arch = "x86_64")]
                    Way::Integers(_, panels) => panels.claim(cx, directions, rows, width),
                    Way::Floats(_, panels) => {
                        panels.claim_with(cx, "cpu.f32.panels.codes", &zeros, directions, rows, width);
                    }
                }
            }
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, [0, 3, 5, 6, 7]) || cx.value(7).is_some() {
            return self.portable.run(cx);
        }
        let (Some(w), Some(r)) = (Coded::read(cx, &self.w, 1, 8)?, Coded::read(cx, &self.r, 2, 10)?) else {
            return self.portable.run(cx);
        };
        let directions = self.node.directions.len();
        let extents =
            Extents::new(cx, &self.node, 4, &[directions, w.width, w.rows], &[directions, r.width, r.rows])?;
        let Extents { steps, batch, hidden: n, .. } = extents;
        let width = 4 * n;
        if extents.lengths.iter().any(|&length| length != steps) || steps * batch * n == 0 {
            return self.portable.run(cx);
        }
        let biases = per_direction_f32(cx, 3, directions, 2 * width, "B is [directions, 8 * hidden]")?;
        let x = cx.dense(0)?;
        let (mut hidden, mut cells) = (extents.state_f32(cx, 5)?, extents.state_f32(cx, 6)?);
        let mut all = vec![0.0; steps * batch * directions * n];
        let values = x.as_slice::<f32>()?;
        let Some(x_scale) = Scale::of(self.isa, values) else { return self.portable.run(cx) };
        let mut codes = vec![0; values.len()];
        x_scale.codes(self.isa, values, &mut codes);
        let mut parts = vec![0; steps * batch * width];
        let mut sums = vec![0; batch * width];
        let mut state_codes = vec![0; batch * n];
        for (d, (_, reverse)) in self.node.directions.iter().enumerate() {
            w.multiply(cx, d, &Input { codes: &codes, zero: x_scale.zero }, &mut parts)?;
            let (w_scale, r_scale) = (x_scale.scale * w.scales[d], r.scales[d]);
            let bias = &biases[d * 2 * width..][..2 * width];
            let (hidden, cells) =
                (&mut hidden[d * batch * n..][..batch * n], &mut cells[d * batch * n..][..batch * n]);
            // The cell is kept in f64 from step to step: states are quantized, where noise would decide ties.
            let mut exact: Vec<f64> = cells.iter().map(|&c| f64::from(c)).collect();
            for step in 0..steps {
                cx.cancel().check()?;
                let time = if *reverse { steps - 1 - step } else { step };
                let Some(scale) = Scale::of(self.isa, hidden) else { return self.portable.run(cx) };
                scale.codes(self.isa, hidden, &mut state_codes);
                r.multiply(cx, d, &Input { codes: &state_codes, zero: scale.zero }, &mut sums)?;
                for b in 0..batch {
                    let step = Step {
                        part: &parts[(time * batch + b) * width..][..width],
                        sums: &sums[b * width..][..width],
                        bias,
                        scales: [f64::from(w_scale), f64::from(scale.scale * r_scale)],
                    };
                    gates(self.isa, step, &mut exact[b * n..][..n], &mut hidden[b * n..][..n]);
                }
                let at = extents.all_at(time, d, 0);
                all[at..at + batch * n].iter_mut().zip(&*hidden).for_each(|(a, &h)| *a = h);
            }
            cells.iter_mut().zip(exact).for_each(|(c, e)| *c = e as f32);
        }
        extents.finish_f32(cx, &all, &[&hidden, &cells])
    }
}

/// What the gates of one sequence are made of.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    /// The inputs' sums and the state's, of codes.
    part: &'a [i32],
    sums: &'a [i32],
    /// Of the input, then of the state.
    bias: &'a [f32],
    scales: [f64; 2],
}

/// e^x to within 1e-13, without branches, so that it is vectorized: Cody-Waite reduction and a polynomial.
#[inline(always)]
fn exp(x: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let x = x.clamp(-700.0, 700.0);
    let shifted = x * std::f64::consts::LOG2_E + MAGIC;
    let n = shifted - MAGIC;
    let r = x - n * 0.693_147_180_369_123_8 - n * 1.908_214_929_270_587_7e-10;
    let mut p = 1.0 / 39_916_800.0;
    for c in [3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        p = p * r + 1.0 / c;
    }
    p * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0f64.to_bits()))
}

#[inline(always)]
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
fn tanh(x: f64) -> f64 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

for_level! {
    fn gates(_s, step: Step<'_>, cell: &mut [f64], hidden: &mut [f32]) {
        let n = cell.len();
        let Step { part, sums, bias, scales } = step;
        let mut values = [[0.0f64; 64]; 4];
        for first in (0..n).step_by(64) {
            let len = (n - first).min(64);
            for (i, values) in values.iter_mut().enumerate() {
                let at = i * n + first;
                let (part, sums) = (&part[at..at + len], &sums[at..at + len]);
                let (own, state) = (&bias[at..at + len], &bias[4 * n + at..4 * n + at + len]);
                for k in 0..len {
                    values[k] = f64::from(part[k]) * scales[0]
                        + f64::from(sums[k]) * scales[1]
                        + f64::from(own[k])
                        + f64::from(state[k]);
                }
            }
            let [input, output, forget, candidate] = &values;
            let (cell, hidden) = (&mut cell[first..first + len], &mut hidden[first..first + len]);
            for k in 0..len {
                let new = sigmoid(forget[k]) * cell[k] + sigmoid(input[k]) * tanh(candidate[k]);
                cell[k] = new;
                hidden[k] = (sigmoid(output[k]) * tanh(new)) as f32;
            }
        }
    }
}
