//! The core against a computation in f64.
#![allow(clippy::disallowed_methods)]

use half::{bf16, f16};
use heirloom_mem::{AppendBuffer, AppendView, DType, Ledger, Tensor};
use heirloom_runtime::{CancelToken, Inline};
use heirloom_simd::Isa;

use super::compute;
use super::job::{self, Job, Shape, Sight};
use crate::ClaimTeam;
use crate::lanes::{self, LaneElement};

/// Evenly spread values within -1..1.
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

fn elements<T: LaneElement>(values: &[f32]) -> Vec<T> {
    values.iter().map(|&v| T::from_f32(v)).collect()
}

/// The rows in an append buffer with more room than rows, the room holding NaN.
fn cache<T: LaneElement>(heads: usize, rows: usize, size: usize, values: &[T]) -> Tensor {
    let ledger = Ledger::default();
    let dense = Tensor::from_vec(&[heads, rows, size], values.to_vec()).unwrap();
    let view = AppendBuffer::copied(&dense, 1, rows + 70, &ledger).unwrap();
    let nan = T::from_f32(f32::NAN);
    let mut slot = view.claim(70).unwrap();
    for head in 0..heads {
        for row in 0..70 {
            slot.write_row(
                head,
                row,
                Tensor::from_vec(&[size], vec![nan; size]).unwrap().dense_bytes().unwrap(),
            );
        }
    }
    drop(slot);
    Tensor::from_append(T::DTYPE, &[1, heads], &[size], view).unwrap()
}

fn expected(shape: &Shape, sight: &Sight, scale: f32, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let group = shape.q_heads / shape.kv_heads;
    let mut out = vec![0.0; shape.tokens * shape.q_heads * shape.head_v];
    for token in 0..shape.tokens {
        let own = sight.past + token;
        let end = if sight.causal { (own + 1).min(shape.positions) } else { shape.positions };
        let start = sight.left.map_or(0, |l| own.saturating_sub(l));
        for head in 0..shape.q_heads {
            let q = &q[(token * shape.q_heads + head) * shape.head_k..][..shape.head_k];
            let row = |x: &[f32], p: usize, d: usize| {
                let at = ((head / group) * shape.positions + p) * d;
                x[at..at + d].iter().map(|&x| f64::from(x)).collect::<Vec<_>>()
            };
            let scores: Vec<f64> = (start..end)
                .map(|p| row(k, p, shape.head_k).iter().zip(q).map(|(k, &q)| k * f64::from(q)).sum::<f64>())
                .map(|s| s * f64::from(scale))
                .collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|s| (s - max).exp()).sum();
            for (p, s) in (start..end).zip(&scores) {
                let weight = (s - max).exp() / total;
                let to = &mut out[(token * shape.q_heads + head) * shape.head_v..][..shape.head_v];
                to.iter_mut().zip(row(v, p, shape.head_v)).for_each(|(o, v)| *o += (weight * v) as f32);
            }
        }
    }
    out
}

fn run<T: LaneElement>(isa: Isa, shape: Shape, sight: Sight, threads: usize) -> (Vec<f32>, Vec<f32>) {
    let q = elements::<T>(&noise(1, shape.tokens * shape.q_heads * shape.head_k));
    let k = elements::<T>(&noise(2, shape.kv_heads * shape.positions * shape.head_k));
    let v = elements::<T>(&noise(3, shape.kv_heads * shape.positions * shape.head_v));
    let wide = |x: &[T]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    let expected = expected(&shape, &sight, 0.7, &wide(&q), &wide(&k), &wide(&v));
    let keys = cache(shape.kv_heads, shape.positions, shape.head_k, &k);
    let values = cache(shape.kv_heads, shape.positions, shape.head_v, &v);
    let cancel = CancelToken::new();
    let job = Job { shape, sight, scale: 0.7, q: &q, keys: &keys, values: &values, cancel: &cancel };
    let mut out = vec![T::from_f32(f32::NAN); expected.len()];
    let mut scratch = vec![f32::NAN; job::scratch_len(&shape, lanes::count(isa), threads)];
    if threads == 1 {
        compute(isa, &job, &mut out, &mut scratch, &Inline).unwrap();
    } else {
        compute(isa, &job, &mut out, &mut scratch, &ClaimTeam::new(threads)).unwrap();
    }
    (wide(&out), expected)
}

fn agree(got: &[f32], expected: &[f32], bound: f32, what: &str) {
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= bound, "{what}: element {i} is {g}, not {e}");
    }
}

const SHAPE: Shape = Shape {
    batch: 1,
    tokens: 1,
    q_heads: 7,
    kv_heads: 1,
    head_k: 64,
    head_v: 64,
    positions: 1,
    tokens_first: true,
};

// proves: K4
#[test]
fn every_level_agrees_with_the_definition_at_every_length_around_blocks_and_chunks() {
    for isa in Isa::available() {
        for positions in [1, 3, 4, 63, 64, 65, 127, 128, 129, 300] {
            for (q_heads, kv_heads) in [(1, 1), (7, 1), (9, 3), (4, 2)] {
                let shape = Shape { q_heads, kv_heads, positions, ..SHAPE };
                let sight = Sight { causal: true, left: None, past: positions - 1 };
                let (got, expected) = run::<f32>(isa, shape, sight, 1);
                agree(
                    &got,
                    &expected,
                    1e-5,
                    &format!("{isa:?} {positions} positions, {q_heads}/{kv_heads} heads"),
                );
            }
        }
    }
}

#[test]
fn a_prompt_sees_its_past_and_no_later_token() {
    for isa in Isa::available() {
        for (tokens, past) in [(2, 0), (70, 0), (33, 40), (5, 200)] {
            let shape = Shape { tokens, q_heads: 6, kv_heads: 2, positions: past + tokens, ..SHAPE };
            for left in [None, Some(0), Some(10)] {
                let (got, expected) = run::<f32>(isa, shape, Sight { causal: true, left, past }, 1);
                agree(
                    &got,
                    &expected,
                    1e-5,
                    &format!("{isa:?} {tokens} tokens behind {past}, left {left:?}"),
                );
            }
        }
    }
}

#[test]
fn half_precision_caches_and_odd_head_sizes_are_read_in_place() {
    for isa in Isa::available() {
        for (head_k, head_v) in [(80, 80), (72, 40), (5, 3)] {
            let shape = Shape { head_k, head_v, positions: 150, ..SHAPE };
            let sight = Sight { causal: false, left: None, past: 149 };
            let (got, expected) = run::<f16>(isa, shape, sight, 1);
            agree(&got, &expected, 2e-3, &format!("{isa:?} f16 {head_k}/{head_v}"));
            let (got, expected) = run::<bf16>(isa, shape, sight, 1);
            agree(&got, &expected, 1e-2, &format!("{isa:?} bf16 {head_k}/{head_v}"));
        }
    }
}

#[test]
fn the_thread_count_changes_no_bit() {
    for isa in Isa::available() {
        for tokens in [1, 40] {
            let shape = Shape { tokens, q_heads: 9, kv_heads: 3, positions: 700 + tokens, ..SHAPE };
            let sight = Sight { causal: true, left: None, past: 700 };
            let (one, _) = run::<f16>(isa, shape, sight, 1);
            let (three, _) = run::<f16>(isa, shape, sight, 3);
            assert_eq!(one, three);
        }
    }
}

/// The rows in segments that end at `cuts` and behind the last, the last one going round the end of its ring.
fn segmented<T: LaneElement>(heads: usize, rows: usize, size: usize, values: &[T], cuts: &[usize]) -> Tensor {
    let ledger = Ledger::default();
    let width = size_of::<T>();
    let at = |head: usize, row: usize| &values[(head * rows + row) * size..(head * rows + row + 1) * size];
    let fill = |view: &AppendView, from: usize, to: usize| {
        let mut slot = view.claim(to - from).unwrap();
        for head in 0..heads {
            for row in from..to {
                let row_of = Tensor::from_vec(&[size], at(head, row).to_vec()).unwrap();
                slot.write_row(head, row - from, row_of.dense_bytes().unwrap());
            }
        }
        slot.commit(&ledger)
    };
    let mut view = AppendBuffer::with_capacity(heads, rows + 7, size * width, &ledger).unwrap();
    let mut from = 0;
    for &cut in cuts {
        view = fill(&view, from, cut).extended(rows + 9, &ledger).unwrap();
        from = cut;
    }
    // The last buffer begins in its middle: rows that nobody sees any more lie before.
    let last = AppendBuffer::with_capacity(heads, rows, size * width, &ledger).unwrap();
    let skipped = fill(&last, 0, rows / 2).part(rows / 2, rows / 2);
    let ring = fill(&skipped, from, rows);
    let whole = match cuts {
        [] => ring,
        _ => fill(&view, from, rows),
    };
    Tensor::from_append(T::DTYPE, &[1, heads], &[size], whole).unwrap()
}

// proves: K2, K4
#[test]
fn segments_and_rings_change_no_bit() {
    let shape = Shape { q_heads: 4, kv_heads: 2, positions: 333, tokens: 3, ..SHAPE };
    let sight = Sight { causal: true, left: None, past: 330 };
    let q = elements::<f16>(&noise(1, shape.tokens * shape.q_heads * shape.head_k));
    let k = elements::<f16>(&noise(2, shape.kv_heads * shape.positions * shape.head_k));
    let v = elements::<f16>(&noise(3, shape.kv_heads * shape.positions * shape.head_v));
    let cancel = CancelToken::new();
    for isa in Isa::available() {
        let compute = |keys: &Tensor, values: &Tensor| {
            let job = Job { shape, sight, scale: 0.7, q: &q, keys, values, cancel: &cancel };
            let mut out = vec![f16::NAN; shape.tokens * shape.q_heads * shape.head_v];
            let mut scratch = vec![f32::NAN; job::scratch_len(&shape, lanes::count(isa), 1)];
            compute(isa, &job, &mut out, &mut scratch, &Inline).unwrap();
            out
        };
        let whole = compute(&cache(2, 333, 64, &k), &cache(2, 333, 64, &v));
        for cuts in [&[][..], &[1], &[64], &[63, 65], &[5, 6, 7, 100, 128, 332]] {
            let (keys, values) = (segmented(2, 333, 64, &k, cuts), segmented(2, 333, 64, &v, cuts));
            assert!(keys.block::<f16>(2, 0).is_err(), "several stretches");
            assert_eq!(compute(&keys, &values), whole, "{isa:?} {cuts:?}");
        }
    }
}

#[test]
fn a_row_that_sees_nothing_is_zero() {
    let shape = Shape { positions: 0, ..SHAPE };
    let keys = Tensor::from_vec::<f32>(&[1, 1, 0, 64], vec![]).unwrap();
    let sight = Sight { causal: true, left: None, past: 0 };
    let q = vec![1.0; 7 * 64];
    let cancel = CancelToken::new();
    let job = Job { shape, sight, scale: 1.0, q: &q, keys: &keys, values: &keys, cancel: &cancel };
    for isa in Isa::available() {
        let mut out = vec![f32::NAN; 7 * 64];
        let mut scratch = vec![f32::NAN; job::scratch_len(&shape, lanes::count(isa), 1)];
        compute(isa, &job, &mut out, &mut scratch, &Inline).unwrap();
        assert_eq!(out, vec![0.0; 7 * 64]);
    }
    assert_eq!(keys.dtype(), DType::Float);
}
