//! Eight lanes in plain Rust: the reference for every other level.

use half::{bf16, f16};
use heirloom_simd::Portable;

use super::Lanes;

const N: usize = 8;

#[inline(always)]
fn map(f: impl Fn(usize) -> f32) -> [f32; N] {
    std::array::from_fn(f)
}

impl Lanes for Portable {
    type V = [f32; N];
    const N: usize = N;

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; N] {
        [x; N]
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> [f32; N] {
        map(|i| from[i])
    }
    #[inline(always)]
    fn store(self, to: &mut [f32], v: [f32; N]) {
        to[..N].iter_mut().zip(v).for_each(|(t, x)| *t = x);
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> [f32; N] {
        map(|i| from[i].to_f32())
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> [f32; N] {
        map(|i| from[i].to_f32())
    }
    #[inline(always)]
    fn add(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| a[i] / b[i])
    }
    /// Rounds twice: a fused product without the instruction is a slow library call.
    #[inline(always)]
    fn fma(self, a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        map(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn max(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn min(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        map(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn round(self, a: [f32; N]) -> [f32; N] {
        map(|i| a[i].round_ties_even())
    }
    #[inline(always)]
    fn mul_pow2(self, a: [f32; N], n: [f32; N]) -> [f32; N] {
        map(|i| a[i] * f32::from_bits(((n[i] as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn select_below(self, x: [f32; N], bound: [f32; N], below: [f32; N], otherwise: [f32; N]) -> [f32; N] {
        map(|i| if x[i] < bound[i] { below[i] } else { otherwise[i] })
    }
    #[inline(always)]
    fn sum(self, a: [f32; N]) -> f32 {
        ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]))
    }
    #[inline(always)]
    fn largest(self, a: [f32; N]) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
}
