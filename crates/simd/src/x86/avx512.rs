//! AVX-512 with VNNI: one register of 64 bytes; `dpbusd` adds four products in 32-bit lanes, which nothing saturates.

use std::arch::x86_64::*;

use super::{BLOCK_OF_LANE, GROUP_ORDER, eight_lanes, join16, mem, op};
use crate::{HalfActivations, Kernel, Level, Simd};

/// Proof that the processor has AVX-512 F, BW, DQ, VL and VNNI, and AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// The token, where this processor has the instructions.
    pub fn detect() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        has.then_some(Avx512(()))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn run<K: Kernel>(token: Avx512, kernel: K) -> K::Output {
    kernel.run(token)
}

/// Where [`Simd::join`] finds, in the even 32-bit elements of two halves, the two parts of each lane's sum.
const fn join_order() -> [i32; 16] {
    let mut order = [0; 16];
    let mut lane = 0;
    while lane < 8 {
        let block = BLOCK_OF_LANE[lane] as i32;
        order[lane] = block / 4 * 16 + block % 4 * 4;
        order[lane + 8] = order[lane] + 2;
        lane += 1;
    }
    order
}
static JOIN_ORDER: [i32; 16] = join_order();

/// Where [`Simd::dot_groups`] finds the scales of what each quarter has: two groups of a block of the first half, two of
/// the last half.
const fn quarter_groups() -> [u8; 16] {
    let mut order = [0; 16];
    let mut quarter = 0;
    while quarter < 4 {
        let mut i = 0;
        while i < 4 {
            order[4 * quarter + i] = (8 * (i / 2) + 2 * quarter + i % 2) as u8;
            i += 1;
        }
        quarter += 1;
    }
    order
}
static QUARTER_GROUPS: [u8; 16] = quarter_groups();

/// Where [`Simd::dot_groups`] has each lane's block after the sums of its two groups are added.
const fn block_order() -> [i32; 16] {
    let mut order = [0; 16];
    let mut lane = 0;
    while lane < 8 {
        let block = BLOCK_OF_LANE[lane] as i32;
        order[lane] = block % 4 * 4 + block / 4 * 2;
        lane += 1;
    }
    order
}
static BLOCK_ORDER: [i32; 16] = block_order();

/// For each half and register, where [`Simd::quarter_scales`] finds each quarter's scale: as the upper byte of the
/// lower 16 bits of each 32-bit element.
const fn quarter_order() -> [[[u8; 64]; 2]; 2] {
    let mut order = [[[0x80; 64]; 2]; 2];
    let mut at = 0;
    while at < 64 {
        let (half, register, element) = (at / 32, at / 16 % 2, at % 16);
        order[half][register][4 * element + 1] = (8 * half + 2 * (element / 4) + register) as u8;
        at += 1;
    }
    order
}
static QUARTER_ORDER: [[[u8; 64]; 2]; 2] = quarter_order();

/// Of four records of `record` bytes, where [`ends`] finds the word at byte `at`.
const fn word_of(record: usize, at: usize) -> u16 {
    let word = if at + 2 <= 64 { at / 2 } else { 32 + (at - second_end(record)) / 2 };
    word as u16
}

/// Where the second of [`ends`] begins.
const fn second_end(record: usize) -> usize {
    if record <= 32 { 4 * record - 64 } else { 2 * record }
}

/// The words of the 16 bytes at byte `at` of four records.
const fn quarter_words(record: usize, at: usize) -> [u16; 32] {
    let mut words = [0; 32];
    let mut i = 0;
    while i < 32 {
        words[i] = word_of(record, i / 8 * record + at + i % 8 * 2);
        i += 1;
    }
    words
}

/// Which of the first four words of its records [`heads`] puts first: that of the bits, where there are some.
const fn first_word(record: usize) -> usize {
    (record - 16).saturating_sub(4) / 2 % 4
}

/// The first four words of each of four records, word by word, from [`first_word`] on.
const fn head_words(record: usize) -> [u16; 16] {
    let mut words = [0; 16];
    let mut i = 0;
    while i < 16 {
        words[i] = word_of(record, i % 4 * record + (first_word(record) + i / 4) % 4 * 2);
        i += 1;
    }
    words
}

/// Where the word at byte `at` of each of eight records stands in the heads of the first four, and of the last four.
const fn lane_words(record: usize, at: usize) -> [u16; 16] {
    let mut words = [0; 16];
    let first = (at / 2 + 4 - first_word(record)) % 4 * 4;
    let mut lane = 0;
    while lane < 8 {
        let block = BLOCK_OF_LANE[lane];
        words[lane] = (first + block % 4 + block / 4 * 16) as u16;
        lane += 1;
    }
    words
}

/// 64 bytes from the first of four records, and 64 that hold the beginning of the last, and its end where it has at
/// most 32.
#[inline(always)]
fn ends<const RECORD: usize>(records: &[u8]) -> [__m512i; 2] {
    let second = const { second_end(RECORD) };
    let bytes = |at: usize| records[at..].first_chunk().expect("four records");
    [load64(bytes(0)), load64(bytes(second))]
}

#[inline(always)]
fn heads<const RECORD: usize>(records: &[u8]) -> __m256i {
    let order = const { &head_words(RECORD) };
    let [first, second] = ends::<RECORD>(records);
    mem!({
        let order = _mm512_castsi256_si512(_mm256_loadu_si256(order.as_ptr().cast()));
        _mm512_castsi512_si256(_mm512_permutex2var_epi16(first, order, second))
    })
}

#[inline(always)]
fn load64(bytes: &[u8; 64]) -> __m512i {
    mem!(_mm512_loadu_si512(bytes.as_ptr().cast()))
}

/// `sums` and the sums of four products each, of both registers.
#[inline(always)]
fn products(sums: __m512i, codes: [__m512i; 2], x: &[[u8; 64]; 2]) -> __m512i {
    let (x0, x1) = (load64(&x[0]), load64(&x[1]));
    op!(_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sums, codes[0], x0), codes[1], x1))
}

/// `sums` and the sums of four products times their scale, of both registers.
#[inline(always)]
fn scaled_products(sums: __m512i, codes: [__m512i; 2], x: &[[u8; 64]; 2], scales: [__m512i; 2]) -> __m512i {
    let (x0, x1) = (load64(&x[0]), load64(&x[1]));
    // Four products of codes of at most 63 fit 16 bits, so the 16-bit product with (scale, 0) is exact.
    op!({
        let zero = _mm512_setzero_si512();
        let sums = _mm512_dpwssd_epi32(sums, _mm512_dpbusd_epi32(zero, codes[0], x0), scales[0]);
        _mm512_dpwssd_epi32(sums, _mm512_dpbusd_epi32(zero, codes[1], x1), scales[1])
    })
}

/// `64 * coarse + fine` sums of four products each, of one register.
#[inline(always)]
fn register_products(codes: __m512i, x: &HalfActivations, register: usize) -> __m512i {
    let (coarse, fine) = (load64(&x[0][register]), load64(&x[1][register]));
    op!({
        let sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, coarse);
        _mm512_dpbusd_epi32(_mm512_slli_epi32::<6>(sums), codes, fine)
    })
}

/// From four rows: result j has, in 128-bit lane l, element 4l + j of each row.
#[inline(always)]
fn interleave(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    op!({
        let (ab0, ab1) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let (cd0, cd1) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(ab0, cd0),
            _mm512_unpackhi_epi64(ab0, cd0),
            _mm512_unpacklo_epi64(ab1, cd1),
            _mm512_unpackhi_epi64(ab1, cd1),
        ]
    })
}

impl Simd for Avx512 {
    const LEVEL: Level = Level::Avx512;
    const NARROW: bool = false;
    const SIGNED_OFFSET: i32 = 128;
    const TILE: usize = 8;
    const FLOAT_TILE: usize = 12;
    const ROWS: usize = 2;
    const SHORT_ROW: usize = 800;
    const SHORT_NEAR: usize = 448;
    const NEAR: usize = 0;
    const FAR: usize = 12288;

    type Codes = __m512i;
    type Bits = [__mmask64; 2];
    type QuarterScales = __m512i;
    type Half = __m512i;
    type I32x8 = __m256i;
    type F32x8 = __m256;
    type Sum = __m512i;
    type I32x16 = __m512i;
    type F32x16 = __m512;

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { run(self, kernel) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 64]) -> __m512i {
        load64(bytes)
    }
    #[inline(always)]
    fn load_quarters(self, quarters: [&[u8; 16]; 4]) -> __m512i {
        let [a, b, c, d] = quarters;
        mem!({
            // Not with `map`, whose call would not be inlined.
            let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            let (c, d) = (_mm_loadu_si128(c.as_ptr().cast()), _mm_loadu_si128(d.as_ptr().cast()));
            let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
            let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        })
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> __m512i {
        op!(_mm512_set1_epi8(byte as i8))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shr_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(self, codes: __m512i) -> __m512i {
        op!(_mm512_srlv_epi64(codes, _mm512_setr_epi64(A, A, B, B, C, C, D, D)))
    }
    #[inline(always)]
    fn shl_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(self, codes: __m512i) -> __m512i {
        op!(_mm512_sllv_epi64(codes, _mm512_setr_epi64(A, A, B, B, C, C, D, D)))
    }
    #[inline(always)]
    fn load_bits(self, bits: [&[u8; 4]; 4]) -> [__mmask64; 2] {
        let [[a0, a1, a2, a3], [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]] = bits;
        [
            u64::from_le_bytes([*a0, *a1, *b0, *b1, *c0, *c1, *d0, *d1]),
            u64::from_le_bytes([*a2, *a3, *b2, *b3, *c2, *c3, *d2, *d3]),
        ]
    }
    #[inline(always)]
    fn set_fifth_bits<const UPPER: bool>(self, codes: __m512i, bits: [__mmask64; 2]) -> __m512i {
        let mask = bits[usize::from(UPPER)];
        op!(_mm512_mask_add_epi8(codes, mask, codes, _mm512_set1_epi8(16)))
    }
    #[inline(always)]
    fn five_bits<const UPPER: bool>(self, packed: __m512i, bits: [__mmask64; 2]) -> __m512i {
        let nibbles = if UPPER { self.shr_quarters::<4, 4, 4, 4>(packed) } else { packed };
        op!({
            let fifth = _mm512_maskz_mov_epi8(bits[usize::from(UPPER)], _mm512_set1_epi8(16));
            // The first where the last has ones, else the second.
            _mm512_ternarylogic_epi64::<0xE4>(nibbles, fifth, _mm512_set1_epi8(15))
        })
    }
    #[inline(always)]
    fn six_bits(self, low: __m512i, high: __m512i) -> __m512i {
        op!({
            let high = _mm512_rolv_epi64(high, _mm512_setr_epi64(4, 4, 2, 2, 0, 0, 62, 62));
            // The first where the last has ones, else the second.
            let codes = _mm512_ternarylogic_epi64::<0xE4>(low, high, _mm512_set1_epi8(15));
            _mm512_and_si512(codes, _mm512_set1_epi8(63))
        })
    }
    #[inline(always)]
    fn store(self, codes: __m512i, to: &mut [u8; 64]) {
        mem!(_mm512_storeu_si512(to.as_mut_ptr().cast(), codes))
    }

    #[inline(always)]
    fn record_quarters<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> __m512i {
        let order = const { &quarter_words(RECORD, AT) };
        let [first, second] = ends::<RECORD>(records);
        mem!(_mm512_permutex2var_epi16(first, _mm512_loadu_si512(order.as_ptr().cast()), second))
    }
    #[inline(always)]
    fn record_bits<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> [__mmask64; 2] {
        const { assert!(AT / 2 == first_word(RECORD)) };
        let words = op!(_mm256_castsi256_si128(heads::<RECORD>(records)));
        op!([_mm_cvtsi128_si64(words) as u64, _mm_extract_epi64::<1>(words) as u64])
    }
    #[inline(always)]
    fn record_f16<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> __m256 {
        let order = const { &lane_words(RECORD, AT) };
        let (first, last) = (heads::<RECORD>(records), heads::<RECORD>(&records[4 * RECORD..]));
        mem!({
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permutex2var_epi16(first, order, last)))
        })
    }
    #[inline(always)]
    fn record_f16_half<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> __m256 {
        let order = const { &lane_words(RECORD, AT) };
        let (first, last) = (heads::<RECORD>(records), op!(_mm256_setzero_si256()));
        mem!({
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permutex2var_epi16(first, order, last)))
        })
    }

    #[inline(always)]
    fn zero_half(self) -> __m512i {
        op!(_mm512_setzero_si512())
    }
    #[inline(always)]
    fn dot(self, _max: u8, codes: [__m512i; 2], x: &HalfActivations) -> __m512i {
        let coarse = products(op!(_mm512_setzero_si512()), codes, &x[0]);
        products(op!(_mm512_slli_epi32::<6>(coarse)), codes, &x[1])
    }
    #[inline(always)]
    fn dot_signed(self, codes: [__m512i; 2], x: &HalfActivations) -> __m512i {
        // As unsigned codes, 128 larger.
        let flip = self.splat(0x80);
        self.dot(u8::MAX, [self.xor(codes[0], flip), self.xor(codes[1], flip)], x)
    }
    #[inline(always)]
    fn dot_scaled(self, codes: [__m512i; 2], x: &HalfActivations, scales: [__m512i; 2]) -> __m512i {
        let coarse = scaled_products(op!(_mm512_setzero_si512()), codes, &x[0], scales);
        scaled_products(op!(_mm512_slli_epi32::<6>(coarse)), codes, &x[1], scales)
    }
    #[inline(always)]
    fn dot_groups(self, codes: [[__m512i; 2]; 2], x: &[HalfActivations; 2], scales: &[u8; 16]) -> __m256i {
        let (a, b) = (register_products(codes[0][0], &x[0], 0), register_products(codes[0][1], &x[0], 1));
        let (c, d) = (register_products(codes[1][0], &x[1], 0), register_products(codes[1][1], &x[1], 1));
        let order = mem!(_mm_loadu_si128(QUARTER_GROUPS.as_ptr().cast()));
        let scales = mem!(_mm_loadu_si128(scales.as_ptr().cast()));
        let lanes = mem!(_mm512_loadu_si512(BLOCK_ORDER.as_ptr().cast()));
        op!({
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            // Each quarter: its groups' sums, of the first half's block and of the last half's.
            let groups = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
            let scaled = _mm512_mullo_epi32(groups, _mm512_cvtepi8_epi32(_mm_shuffle_epi8(scales, order)));
            let blocks = _mm512_add_epi32(scaled, _mm512_srli_epi64::<32>(scaled));
            _mm512_castsi512_si256(_mm512_permutexvar_epi32(lanes, blocks))
        })
    }
    #[inline(always)]
    fn quarter_scales(self, scales: &[u8; 16], half: usize) -> [__m512i; 2] {
        let scales = mem!(_mm512_broadcast_i32x4(_mm_loadu_si128(scales.as_ptr().cast())));
        let order = &QUARTER_ORDER[half];
        op!([
            _mm512_srai_epi16::<8>(_mm512_shuffle_epi8(scales, load64(&order[0]))),
            _mm512_srai_epi16::<8>(_mm512_shuffle_epi8(scales, load64(&order[1]))),
        ])
    }
    #[inline(always)]
    fn join(self, halves: [__m512i; 2]) -> __m256i {
        let order = mem!(_mm512_loadu_si512(JOIN_ORDER.as_ptr().cast()));
        op!({
            let a = _mm512_add_epi32(halves[0], _mm512_srli_epi64::<32>(halves[0]));
            let b = _mm512_add_epi32(halves[1], _mm512_srli_epi64::<32>(halves[1]));
            let parts = _mm512_permutex2var_epi32(a, order, b);
            _mm256_add_epi32(_mm512_castsi512_si256(parts), _mm512_extracti64x4_epi64::<1>(parts))
        })
    }

    eight_lanes!();

    #[inline(always)]
    fn transpose(self, r: [__m512i; 16], to: &mut [[u8; 64]; 16]) {
        let quads = [
            interleave(r[0], r[1], r[2], r[3]),
            interleave(r[4], r[5], r[6], r[7]),
            interleave(r[8], r[9], r[10], r[11]),
            interleave(r[12], r[13], r[14], r[15]),
        ];
        for j in 0..4 {
            let [a, b, c, d] = [quads[0][j], quads[1][j], quads[2][j], quads[3][j]];
            let columns = op!({
                let (ab0, ab1) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xEE>(a, b));
                let (cd0, cd1) = (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xEE>(c, d));
                [
                    _mm512_shuffle_i32x4::<0x88>(ab0, cd0),
                    _mm512_shuffle_i32x4::<0xDD>(ab0, cd0),
                    _mm512_shuffle_i32x4::<0x88>(ab1, cd1),
                    _mm512_shuffle_i32x4::<0xDD>(ab1, cd1),
                ]
            });
            for (l, column) in columns.into_iter().enumerate() {
                self.store(column, &mut to[4 * l + j]);
            }
        }
    }
    #[inline(always)]
    fn start(self, x: &[i16; 2], eights: i32) -> __m512i {
        op!(_mm512_set1_epi32((i32::from(x[0]) + i32::from(x[1])) * eights))
    }
    #[inline(always)]
    fn add_products<const M: usize>(self, sums: &mut [__m512i; M], codes: &[[u8; 64]; 4], x: [&[u8; 16]; M]) {
        for (i, codes) in codes.iter().enumerate() {
            let codes = load64(codes);
            for m in 0..M {
                let x = i32::from_le_bytes(x[m].as_chunks::<4>().0[i]);
                sums[m] = op!(_mm512_dpbusd_epi32(sums[m], codes, _mm512_set1_epi32(x)));
            }
        }
    }
    #[inline(always)]
    fn widen(self, sum: __m512i) -> __m512i {
        sum
    }
    #[inline(always)]
    fn widen_scaled(self, sum: __m512i, scales: &[i32; 16]) -> __m512i {
        self.mul_i32x16(sum, self.load_i32x16(scales))
    }
    #[inline(always)]
    fn row_scale(self, scale: i16) -> i32 {
        i32::from(scale)
    }
    #[inline(always)]
    fn zero_i32x16(self) -> __m512i {
        op!(_mm512_setzero_si512())
    }
    #[inline(always)]
    fn load_i32x16(self, from: &[i32; 16]) -> __m512i {
        mem!(_mm512_loadu_si512(from.as_ptr().cast()))
    }
    #[inline(always)]
    fn add_i32x16(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32x16(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn mul_i32x16(self, a: __m512i, b: __m512i) -> __m512i {
        op!(_mm512_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn splat_i32x16(self, x: i32) -> __m512i {
        op!(_mm512_set1_epi32(x))
    }
    #[inline(always)]
    fn to_f32x16(self, a: __m512i) -> __m512 {
        op!(_mm512_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn splat_f32x16(self, x: f32) -> __m512 {
        op!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn load_f32x16(self, from: &[f32; 16]) -> __m512 {
        mem!(_mm512_loadu_ps(from.as_ptr()))
    }
    #[inline(always)]
    fn store_f32x16(self, a: __m512, to: &mut [f32; 16]) {
        mem!(_mm512_storeu_ps(to.as_mut_ptr(), a))
    }
    #[inline(always)]
    fn add_f32x16(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn mul_f32x16(self, a: __m512, b: __m512) -> __m512 {
        op!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn fma_f32x16(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        op!(_mm512_fmadd_ps(a, b, c))
    }
}
