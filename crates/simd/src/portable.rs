//! Plain Rust: what every other level must equal.

use half::{bf16, f16};

use crate::{BLOCK, COARSE, HalfActivations, Kernel, LANE_OF_BLOCK, Level, Simd};

/// Plain Rust; every processor has it.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

#[inline(always)]
fn lanes<T: Copy + Default, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    std::array::from_fn(f)
}

/// The sum for each of four blocks of `f(byte of the half, quarter register)`.
#[inline(always)]
fn sums(f: impl Fn(usize, usize) -> i32) -> [i32; 4] {
    lanes(|block| (0..16).map(|p| f(0, block * 16 + p) + f(1, block * 16 + p)).sum())
}

#[inline(always)]
fn x_at(x: &HalfActivations, register: usize, at: usize) -> i32 {
    let of = |part: usize| i32::from(x[part][register][at].cast_signed());
    COARSE * of(0) + of(1)
}

#[inline(always)]
fn shift(codes: [u8; 64], f: impl Fn(u64, usize) -> u64) -> [u8; 64] {
    let mut out = [0; 64];
    let (words, _) = codes.as_chunks::<8>();
    let (to, _) = out.as_chunks_mut::<8>();
    for (i, (to, word)) in to.iter_mut().zip(words).enumerate() {
        *to = f(u64::from_le_bytes(*word), i / 2).to_le_bytes();
    }
    out
}

impl Simd for Portable {
    const LEVEL: Level = Level::Portable;
    const NARROW: bool = false;
    const SIGNED_OFFSET: i32 = 0;
    const TILE: usize = 4;
    const FLOAT_TILE: usize = 2;
    const ROWS: usize = 1;
    const SHORT_ROW: usize = 0;
    const SHORT_NEAR: usize = 0;
    const NEAR: usize = 0;
    const FAR: usize = 0;

    type Codes = [u8; 64];
    type Bits = [u32; 4];
    type QuarterScales = [i32; 4];
    type Half = [i32; 4];
    type I32x8 = [i32; 8];
    type F32x8 = [f32; 8];
    type Sum = [i32; 16];
    type I32x16 = [i32; 16];
    type F32x16 = [f32; 16];

    #[inline(always)]
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 64]) -> [u8; 64] {
        *bytes
    }
    #[inline(always)]
    fn load_quarters(self, quarters: [&[u8; 16]; 4]) -> [u8; 64] {
        lanes(|i| quarters[i / 16][i % 16])
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> [u8; 64] {
        [byte; 64]
    }
    #[inline(always)]
    fn and(self, a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
        lanes(|i| a[i] & b[i])
    }
    #[inline(always)]
    fn or(self, a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
        lanes(|i| a[i] | b[i])
    }
    #[inline(always)]
    fn xor(self, a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
        lanes(|i| a[i] ^ b[i])
    }
    #[inline(always)]
    fn shr_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: [u8; 64],
    ) -> [u8; 64] {
        shift(codes, |word, quarter| word >> [A, B, C, D][quarter])
    }
    #[inline(always)]
    fn shl_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: [u8; 64],
    ) -> [u8; 64] {
        shift(codes, |word, quarter| word << [A, B, C, D][quarter])
    }
    #[inline(always)]
    fn load_bits(self, bits: [&[u8; 4]; 4]) -> [u32; 4] {
        lanes(|i| u32::from_le_bytes(*bits[i]))
    }
    #[inline(always)]
    fn set_fifth_bits<const UPPER: bool>(self, codes: [u8; 64], bits: [u32; 4]) -> [u8; 64] {
        let first = if UPPER { 16 } else { 0 };
        lanes(|i| codes[i] | (((bits[i / 16] >> (first + i % 16)) & 1) << 4) as u8)
    }
    #[inline(always)]
    fn store(self, codes: [u8; 64], to: &mut [u8; 64]) {
        *to = codes;
    }

    #[inline(always)]
    fn zero_half(self) -> [i32; 4] {
        [0; 4]
    }
    #[inline(always)]
    fn dot(self, _max: u8, codes: [[u8; 64]; 2], x: &HalfActivations) -> [i32; 4] {
        sums(|register, at| i32::from(codes[register][at]) * x_at(x, register, at))
    }
    #[inline(always)]
    fn dot_signed(self, codes: [[u8; 64]; 2], x: &HalfActivations) -> [i32; 4] {
        sums(|register, at| i32::from(codes[register][at] as i8) * x_at(x, register, at))
    }
    #[inline(always)]
    fn dot_scaled(self, codes: [[u8; 64]; 2], x: &HalfActivations, scales: [[i32; 4]; 2]) -> [i32; 4] {
        sums(|register, at| {
            i32::from(codes[register][at]) * x_at(x, register, at) * scales[register][at / 16]
        })
    }
    #[inline(always)]
    fn quarter_scales(self, scales: &[u8; 16], half: usize) -> [[i32; 4]; 2] {
        lanes(|register| lanes(|i| i32::from(scales[8 * half + 2 * i + register] as i8)))
    }
    #[inline(always)]
    fn join(self, halves: [[i32; 4]; 2]) -> [i32; 8] {
        let mut out = [0; 8];
        for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
            out[lane] = halves[block / 4][block % 4];
        }
        out
    }
    #[inline(always)]
    fn scale_sums(self, scales: &[u8; 16], sums: &[[i16; 16]; 2]) -> [i32; 8] {
        let mut out = [0; 8];
        for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
            for group in 0..2 {
                let of = |part: usize| i32::from(sums[part][2 * lane + group]);
                let scale = i32::from(scales[2 * block + group].cast_signed());
                out[lane] += scale * (COARSE * of(0) + of(1));
            }
        }
        out
    }

    #[inline(always)]
    fn i32x8(self, from: &[i32; 8]) -> [i32; 8] {
        *from
    }
    #[inline(always)]
    fn sub_scaled(self, a: [i32; 8], b: [i32; 8], factor: i32) -> [i32; 8] {
        lanes(|i| a[i].wrapping_sub(b[i].wrapping_mul(factor)))
    }
    #[inline(always)]
    fn to_f32x8(self, a: [i32; 8]) -> [f32; 8] {
        lanes(|i| a[i] as f32)
    }
    #[inline(always)]
    fn splat_f32x8(self, x: f32) -> [f32; 8] {
        [x; 8]
    }
    #[inline(always)]
    fn load_f32x8(self, from: &[f32; 8]) -> [f32; 8] {
        *from
    }
    #[inline(always)]
    fn load_f32x8_bytes(self, from: &[u8; 32]) -> [f32; 8] {
        let (values, _) = from.as_chunks::<4>();
        lanes(|i| f32::from_le_bytes(values[i]))
    }
    #[inline(always)]
    fn store_f32x8(self, a: [f32; 8], to: &mut [f32; 8]) {
        *to = a;
    }
    #[inline(always)]
    fn load_f16x8(self, from: &[u8; 16]) -> [f32; 8] {
        lanes(|i| f16::from_le_bytes([from[2 * i], from[2 * i + 1]]).to_f32())
    }
    #[inline(always)]
    fn load_bf16x8(self, from: &[u8; 16]) -> [f32; 8] {
        lanes(|i| bf16::from_le_bytes([from[2 * i], from[2 * i + 1]]).to_f32())
    }
    #[inline(always)]
    fn block_f16(self, from: [u16; 8]) -> [f32; 8] {
        let mut out = [0.0; 8];
        for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
            out[lane] = f16::from_bits(from[block]).to_f32();
        }
        out
    }
    #[inline(always)]
    fn block_f16_half(self, from: [u16; 4]) -> [f32; 8] {
        self.block_f16([from[0], from[1], from[2], from[3], 0, 0, 0, 0])
    }
    #[inline(always)]
    fn splat_f16(self, x: u16) -> [f32; 8] {
        [f16::from_bits(x).to_f32(); 8]
    }
    #[inline(always)]
    fn block_u8(self, from: u64) -> [f32; 8] {
        let mut out = [0.0; 8];
        for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
            out[lane] = f32::from(from.to_le_bytes()[block]);
        }
        out
    }
    #[inline(always)]
    fn add_f32x8(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn mul_f32x8(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        lanes(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn fma_f32x8(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        lanes(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn sum4(self, a: [[f32; 8]; 4]) -> [f32; 4] {
        a.map(|l| ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7])))
    }

    #[inline(always)]
    fn largest(self, x: &[f32; BLOCK]) -> f32 {
        // As integers, the bits of |x| have the order of |x|, infinity and NaN above all.
        f32::from_bits(x.iter().fold(0, |largest, x| largest.max(x.abs().to_bits())))
    }
    #[inline(always)]
    fn round_block(self, x: &[f32; BLOCK], factor: f32, to: [[&mut [u8; 16]; 2]; 2]) -> [[[i16; 2]; 2]; 2] {
        let mut sums = [[[0; 2]; 2]; 2];
        let [coarse, fine] = to;
        let (halves, _) = x.as_chunks::<16>();
        for (half, ((x, coarse), fine)) in halves.iter().zip(coarse).zip(fine).enumerate() {
            for (i, x) in x.iter().enumerate() {
                let code = (x * factor).round_ties_even() as i32;
                let high = (code + COARSE / 2) >> 6;
                let low = code - COARSE * high;
                coarse[i] = high as u8;
                fine[i] = low as u8;
                sums[0][half][i % 4 / 2] += high as i16;
                sums[1][half][i % 4 / 2] += low as i16;
            }
        }
        sums
    }

    #[inline(always)]
    fn transpose(self, rows: [[u8; 64]; 16], to: &mut [[u8; 64]; 16]) {
        for (group, to) in to.iter_mut().enumerate() {
            *to = lanes(|i| rows[i / 4][4 * group + i % 4]);
        }
    }
    #[inline(always)]
    fn start(self, x: &[i16; 2], eights: i32) -> [i32; 16] {
        [(i32::from(x[0]) + i32::from(x[1])) * eights; 16]
    }
    #[inline(always)]
    fn add_products<const M: usize>(
        self,
        sums: &mut [[i32; 16]; M],
        codes: &[[u8; 64]; 4],
        x: [&[u8; 16]; M],
    ) {
        for (sums, x) in sums.iter_mut().zip(x) {
            for (codes, x) in codes.iter().zip(x.as_chunks::<4>().0) {
                for (sum, codes) in sums.iter_mut().zip(codes.as_chunks::<4>().0) {
                    *sum +=
                        codes.iter().zip(x).map(|(c, x)| i32::from(*c) * i32::from(*x as i8)).sum::<i32>();
                }
            }
        }
    }
    #[inline(always)]
    fn widen(self, sum: [i32; 16]) -> [i32; 16] {
        sum
    }
    #[inline(always)]
    fn widen_scaled(self, sum: [i32; 16], scales: &[i32; 16]) -> [i32; 16] {
        lanes(|i| sum[i] * scales[i])
    }
    #[inline(always)]
    fn row_scale(self, scale: i16) -> i32 {
        i32::from(scale)
    }
    #[inline(always)]
    fn zero_i32x16(self) -> [i32; 16] {
        [0; 16]
    }
    #[inline(always)]
    fn load_i32x16(self, from: &[i32; 16]) -> [i32; 16] {
        *from
    }
    #[inline(always)]
    fn add_i32x16(self, a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        lanes(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn sub_i32x16(self, a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        lanes(|i| a[i].wrapping_sub(b[i]))
    }
    #[inline(always)]
    fn mul_i32x16(self, a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        lanes(|i| a[i].wrapping_mul(b[i]))
    }
    #[inline(always)]
    fn splat_i32x16(self, x: i32) -> [i32; 16] {
        [x; 16]
    }
    #[inline(always)]
    fn to_f32x16(self, a: [i32; 16]) -> [f32; 16] {
        lanes(|i| a[i] as f32)
    }
    #[inline(always)]
    fn splat_f32x16(self, x: f32) -> [f32; 16] {
        [x; 16]
    }
    #[inline(always)]
    fn load_f32x16(self, from: &[f32; 16]) -> [f32; 16] {
        *from
    }
    #[inline(always)]
    fn store_f32x16(self, a: [f32; 16], to: &mut [f32; 16]) {
        *to = a;
    }
    #[inline(always)]
    fn add_f32x16(self, a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn mul_f32x16(self, a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn fma_f32x16(self, a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] * b[i] + c[i])
    }
}
