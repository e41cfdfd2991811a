//! AVX2 with FMA and F16C: two registers of 32 bytes where the interface has one of 64.
//!
//! `maddubs` adds pairs of products in saturating 16-bit lanes. Activations lie within -127..=127, so codes of at
//! most 63 give sums of four products within ±32004, codes of at most 31 sums of eight within ±31496; signed codes
//! give |code| times an activation with the code's sign, pairs within ±32512. No input saturates.

use std::arch::x86_64::*;

use super::{BLOCK_OF_LANE, GROUP_ORDER, eight_lanes, join16, mem, op};
use crate::{COARSE, HalfActivations, Kernel, Level, Simd};

/// Proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The token, where this processor has the instructions.
    pub fn detect() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        has.then_some(Avx2(()))
    }
}

/// Both registers of pairs through the same instructions.
macro_rules! both {
    (($($name:ident),+) => $e:expr) => {
        [
            {
                $(let $name = $name[0];)+
                op!($e)
            },
            {
                $(let $name = $name[1];)+
                op!($e)
            },
        ]
    };
}

#[target_feature(enable = "avx2,fma,f16c")]
fn run<K: Kernel>(token: Avx2, kernel: K) -> K::Output {
    kernel.run(token)
}

/// For byte p of both lanes: the byte of [`Simd::Bits`] that has bit p (or 16 + p) among its high four.
#[inline(always)]
fn bit_bytes<const UPPER: bool>() -> __m256i {
    // A lane holds 32 bits, then the same shifted left by four.
    let (a, b) = if UPPER { (2, 3) } else { (0, 1) };
    let (a4, b4) = (a + 4, b + 4);
    op!(_mm256_setr_epi8(
        a4, a4, a4, a4, a, a, a, a, b4, b4, b4, b4, b, b, b, b, a4, a4, a4, a4, a, a, a, a, b4, b4, b4, b4,
        b, b, b, b
    ))
}

/// `a` in all 32-bit elements of the low lane, `b` in those of the high one. Written out: the compiler would shuffle
/// instead of broadcasting from memory.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_two(a: &[u8; 4], b: &[u8; 4]) -> __m256i {
    let (mut low, high): (__m256i, __m256i);
    // SAFETY: AVX2 instructions that write registers alone and read the borrowed arrays of four bytes.
    unsafe {
        std::arch::asm!(
            "vpbroadcastd {low}, dword ptr [{a}]",
            "vpbroadcastd {high}, dword ptr [{b}]",
            a = in(reg) a.as_ptr(),
            b = in(reg) b.as_ptr(),
            low = out(ymm_reg) low,
            high = out(ymm_reg) high,
            options(pure, readonly, nostack, preserves_flags)
        );
        std::arch::asm!(
            "vpblendd {low}, {low}, {high}, 0xF0",
            low = inout(ymm_reg) low,
            high = in(ymm_reg) high,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    low
}

/// Adds the 64-bit elements of each 128-bit lane to each other, as 32-bit integers: in each lane a and b by turns.
#[inline(always)]
fn add_halves([a, b]: [__m256i; 2]) -> __m256i {
    op!(_mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)))
}

/// As [`add_halves`], of 16-bit integers.
#[inline(always)]
fn add_pairs([a, b]: [__m256i; 2]) -> __m256i {
    op!(_mm256_add_epi16(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)))
}

/// The products of unsigned codes and activations, of four codes each: of both registers, two neighbours.
#[inline(always)]
fn pairs(simd: Avx2, [codes0, codes1]: [[__m256i; 2]; 2], x: &[[u8; 64]; 2]) -> [__m256i; 2] {
    let (x0, x1) = (simd.load(&x[0]), simd.load(&x[1]));
    both!((codes0, x0, codes1, x1) => _mm256_add_epi16(
        _mm256_maddubs_epi16(codes0, x0),
        _mm256_maddubs_epi16(codes1, x1)
    ))
}

/// The products of signed codes and activations, of two neighbours, for each register.
#[inline(always)]
fn signed_pairs(simd: Avx2, [codes0, codes1]: [[__m256i; 2]; 2], x: &[[u8; 64]; 2]) -> [[__m256i; 2]; 2] {
    let (x0, x1) = (simd.load(&x[0]), simd.load(&x[1]));
    [
        both!((codes0, x0) => _mm256_maddubs_epi16(_mm256_abs_epi8(codes0), _mm256_sign_epi8(x0, codes0))),
        both!((codes1, x1) => _mm256_maddubs_epi16(_mm256_abs_epi8(codes1), _mm256_sign_epi8(x1, codes1))),
    ]
}

#[inline(always)]
fn ones() -> __m256i {
    op!(_mm256_set1_epi16(1))
}

#[inline(always)]
fn load32(bytes: &[u8; 64], half: usize) -> __m256i {
    let (halves, _) = bytes.as_chunks::<32>();
    let half = &halves[half];
    mem!(_mm256_loadu_si256(half.as_ptr().cast()))
}

/// For both 128-bit lanes the 16-bit element at `low` and `high`, eight times.
#[inline(always)]
fn spread(elements: __m256i, low: i16, high: i16) -> __m256i {
    let of = |i: i16| (2 * i) | ((2 * i + 1) << 8);
    let (a, b) = (of(low), of(high));
    op!(_mm256_shuffle_epi8(elements, _mm256_setr_epi16(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b)))
}

/// The instructions of [`tile_of_four`] for four codes of 16 rows and one row of activations.
macro_rules! products_of_row {
    ($codes:literal, $x:literal, $low:literal, $high:literal) => {
        concat!(
            "vpbroadcastd {b}, dword ptr [{",
            $x,
            "} + ",
            $codes,
            "]\n",
            "vpmaddubsw {p}, {w0}, {b}\n",
            "vpmaddubsw {q}, {w1}, {b}\n",
            "vpaddw {",
            $low,
            "}, {",
            $low,
            "}, {p}\n",
            "vpaddw {",
            $high,
            "}, {",
            $high,
            "}, {q}\n",
        )
    };
}

/// The instructions of [`tile_of_four`] for four codes of 16 rows.
macro_rules! products_of_codes {
    ($at:literal, $at2:literal, $x:literal) => {
        concat!(
            "vmovdqu {w0}, ymmword ptr [{codes} + ",
            $at,
            "]\n",
            "vmovdqu {w1}, ymmword ptr [{codes} + ",
            $at2,
            "]\n",
            products_of_row!($x, "x0", "a0", "a1"),
            products_of_row!($x, "x1", "b0", "b1"),
            products_of_row!($x, "x2", "c0", "c1"),
            products_of_row!($x, "x3", "d0", "d1"),
        )
    };
}

/// Adds the products of 16 codes of 16 rows with four rows of activations. Written out, because the compiler would sort
/// the sums anew, by rows of activations, and spill most registers.
#[inline]
#[target_feature(enable = "avx2")]
fn tile_of_four(sums: &mut [[__m256i; 2]; 4], codes: &[[u8; 64]; 4], x: [&[u8; 16]; 4]) {
    let [[a0, a1], [b0, b1], [c0, c1], [d0, d1]] = sums;
    // SAFETY: AVX2 instructions that write registers alone, and read the four times 64 bytes at `codes` and the 16 at
    // each of `x`, which are borrowed.
    unsafe {
        std::arch::asm!(
            products_of_codes!("0", "32", "0"),
            products_of_codes!("64", "96", "4"),
            products_of_codes!("128", "160", "8"),
            products_of_codes!("192", "224", "12"),
            codes = in(reg) codes.as_ptr(),
            x0 = in(reg) x[0].as_ptr(),
            x1 = in(reg) x[1].as_ptr(),
            x2 = in(reg) x[2].as_ptr(),
            x3 = in(reg) x[3].as_ptr(),
            a0 = inout(ymm_reg) *a0,
            a1 = inout(ymm_reg) *a1,
            b0 = inout(ymm_reg) *b0,
            b1 = inout(ymm_reg) *b1,
            c0 = inout(ymm_reg) *c0,
            c1 = inout(ymm_reg) *c1,
            d0 = inout(ymm_reg) *d0,
            d1 = inout(ymm_reg) *d1,
            w0 = out(ymm_reg) _,
            w1 = out(ymm_reg) _,
            b = out(ymm_reg) _,
            p = out(ymm_reg) _,
            q = out(ymm_reg) _,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
}

/// Transposes eight rows of eight 32-bit elements.
#[inline(always)]
fn transpose8(r: [__m256i; 8]) -> [__m256i; 8] {
    op!({
        let (a0, a1) = (_mm256_unpacklo_epi32(r[0], r[1]), _mm256_unpackhi_epi32(r[0], r[1]));
        let (a2, a3) = (_mm256_unpacklo_epi32(r[2], r[3]), _mm256_unpackhi_epi32(r[2], r[3]));
        let (a4, a5) = (_mm256_unpacklo_epi32(r[4], r[5]), _mm256_unpackhi_epi32(r[4], r[5]));
        let (a6, a7) = (_mm256_unpacklo_epi32(r[6], r[7]), _mm256_unpackhi_epi32(r[6], r[7]));
        let (b0, b1) = (_mm256_unpacklo_epi64(a0, a2), _mm256_unpackhi_epi64(a0, a2));
        let (b2, b3) = (_mm256_unpacklo_epi64(a1, a3), _mm256_unpackhi_epi64(a1, a3));
        let (b4, b5) = (_mm256_unpacklo_epi64(a4, a6), _mm256_unpackhi_epi64(a4, a6));
        let (b6, b7) = (_mm256_unpacklo_epi64(a5, a7), _mm256_unpackhi_epi64(a5, a7));
        [
            _mm256_permute2x128_si256::<0x20>(b0, b4),
            _mm256_permute2x128_si256::<0x20>(b1, b5),
            _mm256_permute2x128_si256::<0x20>(b2, b6),
            _mm256_permute2x128_si256::<0x20>(b3, b7),
            _mm256_permute2x128_si256::<0x31>(b0, b4),
            _mm256_permute2x128_si256::<0x31>(b1, b5),
            _mm256_permute2x128_si256::<0x31>(b2, b6),
            _mm256_permute2x128_si256::<0x31>(b3, b7),
        ]
    })
}

impl Simd for Avx2 {
    const LEVEL: Level = Level::Avx2;
    const NARROW: bool = true;
    const SIGNED_OFFSET: i32 = 0;
    const TILE: usize = 4;
    const FLOAT_TILE: usize = 6;
    const ROWS: usize = 1;
    const SHORT_ROW: usize = 0;
    const SHORT_NEAR: usize = 0;
    const NEAR: usize = 4096;
    const FAR: usize = 0;

    type Codes = [__m256i; 2];
    type Bits = [__m256i; 2];
    type QuarterScales = [__m256i; 2];
    type Half = __m256i;
    type I32x8 = __m256i;
    type F32x8 = __m256;
    type Sum = [__m256i; 2];
    type I32x16 = [__m256i; 2];
    type F32x16 = [__m256; 2];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { run(self, kernel) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 64]) -> [__m256i; 2] {
        [load32(bytes, 0), load32(bytes, 1)]
    }
    #[inline(always)]
    fn load_quarters(self, q: [&[u8; 16]; 4]) -> [__m256i; 2] {
        mem!([
            _mm256_loadu2_m128i(q[1].as_ptr().cast(), q[0].as_ptr().cast()),
            _mm256_loadu2_m128i(q[3].as_ptr().cast(), q[2].as_ptr().cast()),
        ])
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> [__m256i; 2] {
        let v = op!(_mm256_set1_epi8(byte as i8));
        [v, v]
    }
    #[inline(always)]
    fn and(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn xor(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn shr_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: [__m256i; 2],
    ) -> [__m256i; 2] {
        let counts = op!([_mm256_setr_epi64x(A, A, B, B), _mm256_setr_epi64x(C, C, D, D)]);
        both!((codes, counts) => _mm256_srlv_epi64(codes, counts))
    }
    #[inline(always)]
    fn shl_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: [__m256i; 2],
    ) -> [__m256i; 2] {
        let counts = op!([_mm256_setr_epi64x(A, A, B, B), _mm256_setr_epi64x(C, C, D, D)]);
        both!((codes, counts) => _mm256_sllv_epi64(codes, counts))
    }
    #[inline(always)]
    fn load_bits(self, bits: [&[u8; 4]; 4]) -> [__m256i; 2] {
        op!({
            let shift = _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4);
            let [ab, cd] = [broadcast_two(bits[0], bits[1]), broadcast_two(bits[2], bits[3])];
            [_mm256_sllv_epi32(ab, shift), _mm256_sllv_epi32(cd, shift)]
        })
    }
    #[inline(always)]
    fn set_fifth_bits<const UPPER: bool>(self, codes: [__m256i; 2], bits: [__m256i; 2]) -> [__m256i; 2] {
        let bytes = bit_bytes::<UPPER>();
        let place = op!(_mm256_set1_epi32(0x8040_2010_u32.cast_signed()));
        let value = op!(_mm256_set1_epi8(16));
        both!((codes, bits) => {
            let set = _mm256_and_si256(_mm256_shuffle_epi8(bits, bytes), place);
            _mm256_or_si256(codes, _mm256_min_epu8(set, value))
        })
    }
    #[inline(always)]
    fn store(self, codes: [__m256i; 2], to: &mut [u8; 64]) {
        let (halves, _) = to.as_chunks_mut::<32>();
        for (to, codes) in halves.iter_mut().zip(codes) {
            mem!(_mm256_storeu_si256(to.as_mut_ptr().cast(), codes));
        }
    }

    #[inline(always)]
    fn zero_half(self) -> __m256i {
        op!(_mm256_setzero_si256())
    }
    #[inline(always)]
    fn dot(self, max: u8, codes: [[__m256i; 2]; 2], x: &HalfActivations) -> __m256i {
        debug_assert!(max <= 63);
        let [coarse, fine] = [pairs(self, codes, &x[0]), pairs(self, codes, &x[1])];
        if max <= 31 {
            op!({
                let coarse = _mm256_madd_epi16(add_pairs(coarse), _mm256_set1_epi16(COARSE as i16));
                _mm256_add_epi32(coarse, _mm256_madd_epi16(add_pairs(fine), ones()))
            })
        } else {
            add_halves(both!((coarse, fine) => {
                let coarse = _mm256_madd_epi16(coarse, _mm256_set1_epi16(COARSE as i16));
                _mm256_add_epi32(coarse, _mm256_madd_epi16(fine, ones()))
            }))
        }
    }
    #[inline(always)]
    fn dot_signed(self, codes: [[__m256i; 2]; 2], x: &HalfActivations) -> __m256i {
        let [coarse, fine] = [signed_pairs(self, codes, &x[0]), signed_pairs(self, codes, &x[1])];
        let ([coarse0, coarse1], [fine0, fine1]) = (coarse, fine);
        add_halves(both!((coarse0, coarse1, fine0, fine1) => {
            let weight = _mm256_set1_epi16(COARSE as i16);
            let coarse =
                _mm256_add_epi32(_mm256_madd_epi16(coarse0, weight), _mm256_madd_epi16(coarse1, weight));
            // Fine activations are within -32..=32: two pairs fit 16 bits.
            let fine = _mm256_madd_epi16(_mm256_add_epi16(fine0, fine1), ones());
            _mm256_add_epi32(coarse, fine)
        }))
    }
    #[inline(always)]
    fn dot_scaled(self, codes: [[__m256i; 2]; 2], x: &HalfActivations, scales: [[__m256i; 2]; 2]) -> __m256i {
        let ([x0, x1], [fine0, fine1]) =
            ([self.load(&x[0][0]), self.load(&x[0][1])], [self.load(&x[1][0]), self.load(&x[1][1])]);
        let ([codes0, codes1], [scales0, scales1]) = (codes, scales);
        add_halves(both!((codes0, x0, fine0, scales0, codes1, x1, fine1, scales1) => {
            let a = _mm256_madd_epi16(_mm256_maddubs_epi16(codes0, x0), scales0);
            let b = _mm256_madd_epi16(_mm256_maddubs_epi16(codes1, x1), scales1);
            let fine_a = _mm256_madd_epi16(_mm256_maddubs_epi16(codes0, fine0), scales0);
            let fine_b = _mm256_madd_epi16(_mm256_maddubs_epi16(codes1, fine1), scales1);
            let coarse = _mm256_slli_epi32::<6>(_mm256_add_epi32(a, b));
            _mm256_add_epi32(coarse, _mm256_add_epi32(fine_a, fine_b))
        }))
    }
    #[inline(always)]
    fn quarter_scales(self, scales: &[u8; 16], half: usize) -> [[__m256i; 2]; 2] {
        let all = mem!(_mm256_cvtepi8_epi16(_mm_loadu_si128(scales.as_ptr().cast())));
        let own = if half == 0 {
            op!(_mm256_permute4x64_epi64::<0x44>(all))
        } else {
            op!(_mm256_permute4x64_epi64::<0xEE>(all))
        };
        [[spread(own, 0, 2), spread(own, 4, 6)], [spread(own, 1, 3), spread(own, 5, 7)]]
    }
    #[inline(always)]
    fn join(self, halves: [__m256i; 2]) -> __m256i {
        let [a, b] = halves;
        op!(_mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)))
    }

    eight_lanes!();

    #[inline(always)]
    fn transpose(self, rows: [[__m256i; 2]; 16], to: &mut [[u8; 64]; 16]) {
        for part in 0..2 {
            for eight in 0..2 {
                let columns = transpose8(std::array::from_fn(|i| rows[8 * eight + i][part]));
                for (i, column) in columns.into_iter().enumerate() {
                    let (halves, _) = to[8 * part + i].as_chunks_mut::<32>();
                    let to = &mut halves[eight];
                    mem!(_mm256_storeu_si256(to.as_mut_ptr().cast(), column));
                }
            }
        }
    }
    #[inline(always)]
    fn start(self, x: &[i16; 2], eights: i32) -> [__m256i; 2] {
        let pair = (i32::from(x[1]) << 16) | (i32::from(x[0]) & 0xffff);
        // A product by a constant power of two is a shift.
        let v = op!(_mm256_mullo_epi16(_mm256_set1_epi32(pair), _mm256_set1_epi16(eights as i16)));
        [v, v]
    }
    #[inline(always)]
    fn add_products<const M: usize>(
        self,
        sums: &mut [[__m256i; 2]; M],
        codes: &[[u8; 64]; 4],
        x: [&[u8; 16]; M],
    ) {
        let (tiles, rest) = sums.as_chunks_mut::<4>();
        let (x, x_rest) = x.as_chunks::<4>();
        for (sums, x) in tiles.iter_mut().zip(x) {
            op!(tile_of_four(sums, codes, *x));
        }
        for (sum, x) in rest.iter_mut().zip(x_rest) {
            for (codes, x) in codes.iter().zip(x.as_chunks::<4>().0) {
                let (codes, x) = (self.load(codes), op!(_mm256_set1_epi32(i32::from_le_bytes(*x))));
                let products: [__m256i; 2] = both!((codes) => _mm256_maddubs_epi16(codes, x));
                let old = *sum;
                *sum = both!((old, products) => _mm256_add_epi16(old, products));
            }
        }
    }
    #[inline(always)]
    fn widen(self, sum: [__m256i; 2]) -> [__m256i; 2] {
        both!((sum) => _mm256_madd_epi16(sum, ones()))
    }
    #[inline(always)]
    fn widen_scaled(self, sum: [__m256i; 2], scales: &[i32; 16]) -> [__m256i; 2] {
        let scales = self.load_i32x16(scales);
        both!((sum, scales) => _mm256_madd_epi16(sum, scales))
    }
    #[inline(always)]
    fn row_scale(self, scale: i16) -> i32 {
        let scale = i32::from(scale);
        (scale << 16) | (scale & 0xffff)
    }
    #[inline(always)]
    fn zero_i32x16(self) -> [__m256i; 2] {
        op!([_mm256_setzero_si256(); 2])
    }
    #[inline(always)]
    fn load_i32x16(self, from: &[i32; 16]) -> [__m256i; 2] {
        let (halves, _) = from.as_chunks::<8>();
        [self.i32x8(&halves[0]), self.i32x8(&halves[1])]
    }
    #[inline(always)]
    fn add_i32x16(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32x16(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_sub_epi32(a, b))
    }
    #[inline(always)]
    fn mul_i32x16(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        both!((a, b) => _mm256_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn splat_i32x16(self, x: i32) -> [__m256i; 2] {
        op!([_mm256_set1_epi32(x); 2])
    }
    #[inline(always)]
    fn to_f32x16(self, a: [__m256i; 2]) -> [__m256; 2] {
        both!((a) => _mm256_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn splat_f32x16(self, x: f32) -> [__m256; 2] {
        op!([_mm256_set1_ps(x); 2])
    }
    #[inline(always)]
    fn load_f32x16(self, from: &[f32; 16]) -> [__m256; 2] {
        let (halves, _) = from.as_chunks::<8>();
        [self.load_f32x8(&halves[0]), self.load_f32x8(&halves[1])]
    }
    #[inline(always)]
    fn store_f32x16(self, a: [__m256; 2], to: &mut [f32; 16]) {
        let (halves, _) = to.as_chunks_mut::<8>();
        for (to, a) in halves.iter_mut().zip(a) {
            self.store_f32x8(a, to);
        }
    }
    #[inline(always)]
    fn add_f32x16(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        both!((a, b) => _mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn mul_f32x16(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        both!((a, b) => _mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn fma_f32x16(self, a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
        both!((a, b, c) => _mm256_fmadd_ps(a, b, c))
    }
}
