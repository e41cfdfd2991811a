//! Every method of every level of this processor against scalar definitions.
#![allow(clippy::disallowed_methods, unsafe_code)]

use half::{bf16, f16};
use heirloom_simd::{Isa, Level};

use super::for_level;

const SOME: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    -3.5,
    1e-40,
    -1e30,
    0.5,
    -0.5,
    16_777_217.0,
    7.25,
    f32::MAX,
    f32::MIN_POSITIVE,
    -88.0,
    123.456,
];

/// The same bits; of NaN, any.
#[track_caller]
fn same(actual: &[f32], expected: impl Fn(usize) -> f32) {
    for (i, x) in actual.iter().enumerate() {
        let expected = expected(i);
        assert!(
            x.to_bits() == expected.to_bits() || x.is_nan() && expected.is_nan(),
            "lane {i}: {x} for {expected}"
        );
    }
}

for_level! {
    fn arithmetic(s, a: &[f32], b: &[f32], c: &[f32], fused: bool) {
        let n = S::N;
        let (va, vb, vc) = (s.load(a), s.load(b), s.load(c));
        let mut out = [0.0; 16];
        s.store(&mut out, va);
        same(&out[..n], |i| a[i]);
        assert!(out[n..].iter().all(|x| *x == 0.0), "no more than the lanes are stored");
        s.store(&mut out, s.splat(a[3]));
        same(&out[..n], |_| a[3]);
        s.store(&mut out, s.add(va, vb));
        same(&out[..n], |i| a[i] + b[i]);
        s.store(&mut out, s.sub(va, vb));
        same(&out[..n], |i| a[i] - b[i]);
        s.store(&mut out, s.mul(va, vb));
        same(&out[..n], |i| a[i] * b[i]);
        s.store(&mut out, s.div(va, vb));
        same(&out[..n], |i| a[i] / b[i]);
        s.store(&mut out, s.fma(va, vb, vc));
        same(&out[..n], |i| if fused { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] });
        s.store(&mut out, s.max(va, vb));
        same(&out[..n], |i| if a[i] > b[i] { a[i] } else { b[i] });
        s.store(&mut out, s.min(va, vb));
        same(&out[..n], |i| if a[i] < b[i] { a[i] } else { b[i] });
        s.store(&mut out, s.round(va));
        same(&out[..n], |i| a[i].round_ties_even());
        s.store(&mut out, s.select_below(va, vb, vc, s.splat(7.0)));
        same(&out[..n], |i| if a[i] < b[i] { c[i] } else { 7.0 });
    }
}

for_level! {
    fn powers(s, a: &[f32], n: f32) {
        let mut out = [0.0; 16];
        s.store(&mut out, s.mul_pow2(s.load(a), s.splat(n)));
        same(&out[..S::N], |i| (f64::from(a[i]) * f64::from(n).exp2()) as f32);
    }
}

for_level! {
    fn reductions(s, rows: &[[f32; 16]; 4]) {
        // Whole numbers: their sums are exact in any order.
        let v = rows.map(|row| s.load(&row));
        let sums = rows.map(|row| row[..S::N].iter().sum::<f32>());
        assert_eq!(s.sum4(v), sums);
        for (v, (row, sum)) in v.into_iter().zip(rows.iter().zip(sums)) {
            assert_eq!(s.sum(v), sum);
            assert_eq!(s.largest(v), row[..S::N].iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}

for_level! {
    fn halves(s, f: &[f16], b: &[bf16]) {
        let mut out = [0.0; 16];
        s.store(&mut out, s.load_f16(f));
        same(&out[..S::N], |i| f[i].to_f32());
        s.store(&mut out, s.load_bf16(b));
        same(&out[..S::N], |i| b[i].to_f32());
    }
}

for_level! {
    fn exponentials(s, x: &[f32], out: &mut [f32]) {
        for (x, out) in x.chunks_exact(S::N).zip(out.chunks_exact_mut(S::N)) {
            s.store(out, s.exp(s.load(x)));
        }
    }
}

#[test]
fn arithmetic_is_that_of_each_lane() {
    for isa in Isa::available() {
        let fused = isa.level() != Level::Portable;
        for shift in 0..16 {
            let (mut b, mut c) = (SOME, SOME);
            b.rotate_left(shift);
            c.rotate_right((shift + 3) % 16);
            arithmetic(isa, &SOME, &b, &c, fused);
            b[shift] = f32::NAN;
            c[shift / 2] = f32::INFINITY;
            arithmetic(isa, &b, &c, &SOME, fused);
            arithmetic(isa, &c, &b, &SOME, fused);
        }
    }
}

#[test]
fn powers_of_two_scale_without_rounding() {
    let a: [f32; 16] = std::array::from_fn(|i| 0.6 + i as f32 / 20.0);
    for isa in Isa::available() {
        (-126..=127).for_each(|n| powers(isa, &a, n as f32));
    }
}

#[test]
fn registers_are_summed_and_their_largest_found() {
    let rows: [[f32; 16]; 4] =
        std::array::from_fn(|r| std::array::from_fn(|i| ((i * 37 + r * 11) % 29) as f32 - 20.0));
    for isa in Isa::available() {
        reductions(isa, &rows);
        for at in 0..8 {
            let mut rows = [[-1.0; 16]; 4];
            rows[at % 4][at] = 5.0;
            rows[(at + 1) % 4][at] = f32::NEG_INFINITY;
            reductions(isa, &rows);
        }
    }
}

#[test]
fn all_float16_and_bfloat16_values_widen_to_their_own() {
    for isa in Isa::available() {
        for first in (0..=u16::MAX).step_by(8) {
            let f: [f16; 16] = std::array::from_fn(|i| f16::from_bits(first.wrapping_add(i as u16)));
            let b: [bf16; 16] = std::array::from_fn(|i| bf16::from_bits(first.wrapping_add(i as u16)));
            halves(isa, &f, &b);
        }
    }
}

#[test]
fn exponentials_are_within_one_ulp() {
    let x: Vec<f32> = (0..1 << 16).map(|i| -86.6 + i as f32 * ((88.722 + 86.6) / 65_536.0)).collect();
    for isa in Isa::available() {
        let most = if isa.level() == Level::Portable { 2.0 } else { 1.0 };
        let mut y = vec![f32::NAN; x.len()];
        exponentials(isa, &x, &mut y);
        for (x, y) in x.iter().zip(&y) {
            let exact = f64::from(*x).exp();
            let ulp = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
            let error = (f64::from(*y) - exact).abs() / ulp;
            assert!(error <= most, "e^{x} at {}: {y:e} misses {exact:e} by {error} ULP", isa.level());
        }
        let mut x = [0.0; 16];
        x[..8].copy_from_slice(&[0.0, -86.7, f32::NEG_INFINITY, 88.8, 1e30, f32::INFINITY, f32::NAN, -1e30]);
        let mut y = [f32::NAN; 16];
        exponentials(isa, &x, &mut y);
        same(&y[..8], |i| [1.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY, f32::INFINITY, f32::NAN, 0.0][i]);
    }
}
