//! The levels of x86-64. Each method is one or a few instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

mod avx2;
mod avx512;

pub use avx2::Avx2;
pub use avx512::Avx512;

/// Calls instructions that touch no memory.
macro_rules! op {
    ($e:expr) => {{
        // SAFETY: the token proves that the processor has the instructions; they touch registers alone.
        unsafe { $e }
    }};
}

/// Calls unaligned loads from, or stores to, whole arrays that are borrowed.
macro_rules! mem {
    ($e:expr) => {{
        // SAFETY: the token proves that the processor has the instructions; they touch exactly the bytes of the
        // borrowed arrays that they are given, and need no alignment.
        unsafe { $e }
    }};
}

/// The block of each lane: the inverse of [`crate::LANE_OF_BLOCK`].
const BLOCK_OF_LANE: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

const fn group_order() -> [u8; 16] {
    let mut order = [0; 16];
    let mut lane = 0;
    while lane < 8 {
        order[2 * lane] = 2 * BLOCK_OF_LANE[lane] as u8;
        order[2 * lane + 1] = 2 * BLOCK_OF_LANE[lane] as u8 + 1;
        lane += 1;
    }
    order
}

/// Where [`crate::Simd::scale_sums`] finds the scales of the lanes' groups.
static GROUP_ORDER: [u8; 16] = group_order();

/// Four times 16 bits, the first lowest.
#[inline(always)]
fn join16(f: [u16; 4]) -> i64 {
    let [a, b, c, d] = f.map(i64::from);
    a | b << 16 | (c | d << 16) << 32
}

/// The methods on eight lanes: the same instructions at both levels.
macro_rules! eight_lanes {
    () => {
        #[inline(always)]
        fn scale_sums(self, scales: &[u8; 16], sums: &[[i16; 16]; 2]) -> __m256i {
            mem!({
                let order = _mm_loadu_si128(GROUP_ORDER.as_ptr().cast());
                let scales = _mm_loadu_si128(scales.as_ptr().cast());
                let scales = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, order));
                let coarse = _mm256_madd_epi16(scales, _mm256_loadu_si256(sums[0].as_ptr().cast()));
                let fine = _mm256_madd_epi16(scales, _mm256_loadu_si256(sums[1].as_ptr().cast()));
                _mm256_add_epi32(_mm256_slli_epi32::<6>(coarse), fine)
            })
        }
        #[inline(always)]
        fn i32x8(self, from: &[i32; 8]) -> __m256i {
            mem!(_mm256_loadu_si256(from.as_ptr().cast()))
        }
        #[inline(always)]
        fn sub_scaled(self, a: __m256i, b: __m256i, factor: i32) -> __m256i {
            op!(_mm256_sub_epi32(a, _mm256_mullo_epi32(b, _mm256_set1_epi32(factor))))
        }
        #[inline(always)]
        fn to_f32x8(self, a: __m256i) -> __m256 {
            op!(_mm256_cvtepi32_ps(a))
        }
        #[inline(always)]
        fn splat_f32x8(self, x: f32) -> __m256 {
            op!(_mm256_set1_ps(x))
        }
        #[inline(always)]
        fn load_f32x8(self, from: &[f32; 8]) -> __m256 {
            mem!(_mm256_loadu_ps(from.as_ptr()))
        }
        #[inline(always)]
        fn load_f32x8_bytes(self, from: &[u8; 32]) -> __m256 {
            mem!(_mm256_loadu_ps(from.as_ptr().cast()))
        }
        #[inline(always)]
        fn store_f32x8(self, a: __m256, to: &mut [f32; 8]) {
            mem!(_mm256_storeu_ps(to.as_mut_ptr(), a))
        }
        #[inline(always)]
        fn load_f16x8(self, from: &[u8; 16]) -> __m256 {
            mem!(_mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())))
        }
        #[inline(always)]
        fn load_bf16x8(self, from: &[u8; 16]) -> __m256 {
            let from = mem!(_mm_loadu_si128(from.as_ptr().cast()));
            op!(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(from))))
        }
        #[inline(always)]
        fn block_f16(self, f: [u16; 8]) -> __m256 {
            const B: [usize; 8] = BLOCK_OF_LANE;
            // Joined in general registers: those of vectors have enough to do.
            let low = join16([f[B[0]], f[B[1]], f[B[2]], f[B[3]]]);
            let high = join16([f[B[4]], f[B[5]], f[B[6]], f[B[7]]]);
            op!(_mm256_cvtph_ps(_mm_set_epi64x(high, low)))
        }
        #[inline(always)]
        fn block_f16_half(self, f: [u16; 4]) -> __m256 {
            // Blocks 0 to 3 have lanes 0, 4, 1 and 5.
            let (low, high) = (join16([f[0], f[2], 0, 0]), join16([f[1], f[3], 0, 0]));
            op!(_mm256_cvtph_ps(_mm_set_epi64x(high, low)))
        }
        #[inline(always)]
        fn splat_f16(self, x: u16) -> __m256 {
            op!(_mm256_cvtph_ps(_mm_set1_epi16(x.cast_signed())))
        }
        #[inline(always)]
        fn block_u8(self, from: u64) -> __m256 {
            op!({
                let order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
                let bytes = _mm_shuffle_epi8(_mm_cvtsi64_si128(from as i64), order);
                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
            })
        }
        #[inline(always)]
        fn add_f32x8(self, a: __m256, b: __m256) -> __m256 {
            op!(_mm256_add_ps(a, b))
        }
        #[inline(always)]
        fn mul_f32x8(self, a: __m256, b: __m256) -> __m256 {
            op!(_mm256_mul_ps(a, b))
        }
        #[inline(always)]
        fn fma_f32x8(self, a: __m256, b: __m256, c: __m256) -> __m256 {
            op!(_mm256_fmadd_ps(a, b, c))
        }
        #[inline(always)]
        fn largest(self, x: &[f32; 32]) -> f32 {
            let (x, _) = x.as_chunks::<8>();
            // As integers, the bits of |x| have the order of |x|, infinity and NaN above all.
            f32::from_bits(mem!({
                let magnitude = _mm256_set1_epi32(i32::MAX);
                let a = _mm256_and_si256(_mm256_loadu_si256(x[0].as_ptr().cast()), magnitude);
                let b = _mm256_and_si256(_mm256_loadu_si256(x[1].as_ptr().cast()), magnitude);
                let c = _mm256_and_si256(_mm256_loadu_si256(x[2].as_ptr().cast()), magnitude);
                let d = _mm256_and_si256(_mm256_loadu_si256(x[3].as_ptr().cast()), magnitude);
                let m = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
                let m = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256::<1>(m));
                let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b01_00_11_10>(m));
                let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b10_11_00_01>(m));
                _mm_cvtsi128_si32(m) as u32
            }))
        }
        #[inline(always)]
        fn round_block(self, x: &[f32; 32], factor: f32, to: [[&mut [u8; 16]; 2]; 2]) -> [[[i16; 2]; 2]; 2] {
            let (x, _) = x.as_chunks::<8>();
            let [[coarse_first, coarse_last], [fine_first, fine_last]] = to;
            let parts = mem!({
                let factor = _mm256_set1_ps(factor);
                let a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x[0].as_ptr()), factor));
                let b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x[1].as_ptr()), factor));
                let c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x[2].as_ptr()), factor));
                let d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x[3].as_ptr()), factor));
                let (ab, cd) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
                let half = _mm256_set1_epi16(32);
                let coarse_ab = _mm256_srai_epi16::<6>(_mm256_add_epi16(ab, half));
                let coarse_cd = _mm256_srai_epi16::<6>(_mm256_add_epi16(cd, half));
                let fine_ab = _mm256_sub_epi16(ab, _mm256_slli_epi16::<6>(coarse_ab));
                let fine_cd = _mm256_sub_epi16(cd, _mm256_slli_epi16::<6>(coarse_cd));
                // Packing works within 128-bit lanes: put the 32-bit pieces back in order.
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                [
                    _mm256_permutevar8x32_epi32(_mm256_packs_epi16(coarse_ab, coarse_cd), order),
                    _mm256_permutevar8x32_epi32(_mm256_packs_epi16(fine_ab, fine_cd), order),
                ]
            });
            mem!({
                _mm_storeu_si128(coarse_first.as_mut_ptr().cast(), _mm256_castsi256_si128(parts[0]));
                _mm_storeu_si128(coarse_last.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(parts[0]));
                _mm_storeu_si128(fine_first.as_mut_ptr().cast(), _mm256_castsi256_si128(parts[1]));
                _mm_storeu_si128(fine_last.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(parts[1]));
            });
            let mut sums = [[[0; 2]; 2]; 2];
            for (codes, sums) in parts.into_iter().zip(&mut sums) {
                let both = op!({
                    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
                    let pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32::<0b01_00_11_10>(pairs));
                    let pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32::<0b10_11_00_01>(pairs));
                    [_mm256_cvtsi256_si32(pairs), _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(pairs))]
                });
                *sums = both.map(|s| [s as i16, (s >> 16) as i16]);
            }
            sums
        }
        #[inline(always)]
        fn sum4(self, a: [__m256; 4]) -> [f32; 4] {
            let mut out = [0.0; 4];
            let sums = op!({
                let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
                _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs))
            });
            mem!(_mm_storeu_ps(out.as_mut_ptr(), sums));
            out
        }
    };
}
pub(crate) use {eight_lanes, mem, op};

/// See [`crate::prefetch`].
#[inline(always)]
pub(crate) fn prefetch<const FAR: bool>(address: *const u8) {
    if FAR {
        // SAFETY: a prefetch is a hint: it reads nothing and faults on no address. All x86-64 processors have it.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    } else {
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
