//! AVX2 (with FMA and F16C) and AVX-512 lanes.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use half::{bf16, f16};
use heirloom_simd::{Avx2, Avx512};

use super::Lanes;

/// Calls intrinsics that touch no memory.
macro_rules! op {
    ($e:expr) => {{
        // SAFETY: the token proves that the processor has the instruction, which touches registers alone.
        unsafe { $e }
    }};
}

/// Calls a load or store on the first `$n` elements of a slice, after checking that they exist.
macro_rules! mem {
    ($slice:ident, $n:expr, $e:expr) => {{
        assert!($slice.len() >= $n);
        // SAFETY: the token proves the instruction, the assertion that all bytes it touches lie in the slice; it
        // needs no alignment.
        unsafe { $e }
    }};
}

impl Lanes for Avx2 {
    type V = __m256;
    const N: usize = 8;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        op!(_mm256_set1_ps(x))
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> __m256 {
        mem!(from, 8, _mm256_loadu_ps(from.as_ptr()))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32], v: __m256) {
        mem!(to, 8, _mm256_storeu_ps(to.as_mut_ptr(), v))
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> __m256 {
        mem!(from, 8, _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())))
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> __m256 {
        let half = mem!(from, 8, _mm_loadu_si128(from.as_ptr().cast()));
        op!(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(half))))
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        op!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        op!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        op!(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn mul_pow2(self, a: __m256, n: __m256) -> __m256 {
        op!({
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased)))
        })
    }
    #[inline(always)]
    fn select_below(self, x: __m256, bound: __m256, below: __m256, otherwise: __m256) -> __m256 {
        op!(_mm256_blendv_ps(otherwise, below, _mm256_cmp_ps::<_CMP_LT_OQ>(x, bound)))
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        op!({
            let x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        })
    }
    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        op!({
            let x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        })
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        op!({
            let x = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let mut out = [0.0; 4];
            _mm_storeu_ps(out.as_mut_ptr(), x);
            out
        })
    }
}

impl Lanes for Avx512 {
    type V = __m512;
    const N: usize = 16;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        op!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        mem!(from, 16, _mm512_loadu_ps(from.as_ptr()))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32], v: __m512) {
        mem!(to, 16, _mm512_storeu_ps(to.as_mut_ptr(), v))
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16]) -> __m512 {
        mem!(from, 16, _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())))
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16]) -> __m512 {
        let half = mem!(from, 16, _mm256_loadu_si256(from.as_ptr().cast()));
        op!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half))))
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        op!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        op!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn mul_pow2(self, a: __m512, n: __m512) -> __m512 {
        op!(_mm512_scalef_ps(a, n))
    }
    #[inline(always)]
    fn select_below(self, x: __m512, bound: __m512, below: __m512, otherwise: __m512) -> __m512 {
        op!(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, bound), otherwise, below))
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        op!(_mm512_reduce_add_ps(a))
    }
    #[inline(always)]
    fn largest(self, a: __m512) -> f32 {
        op!(_mm512_reduce_max_ps(a))
    }
    #[inline(always)]
    fn sum4(self, v: [__m512; 4]) -> [f32; 4] {
        // Halves first, then as with eight lanes: four reductions one by one take three times as many instructions.
        let [a, b, c, d] = v;
        op!({
            let a = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a));
            let b = _mm256_add_ps(_mm512_castps512_ps256(b), _mm512_extractf32x8_ps::<1>(b));
            let c = _mm256_add_ps(_mm512_castps512_ps256(c), _mm512_extractf32x8_ps::<1>(c));
            let d = _mm256_add_ps(_mm512_castps512_ps256(d), _mm512_extractf32x8_ps::<1>(d));
            let x = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let mut out = [0.0; 4];
            _mm_storeu_ps(out.as_mut_ptr(), x);
            out
        })
    }
}
