//! Registers of eight and of sixteen lanes.

use half::{bf16, f16};
use heirloom_simd::{Isa, Kernel, LANE_OF_BLOCK, Level, Simd};

use crate::random::Random;

#[inline(always)]
fn eight<S: Simd>(s: S, v: S::F32x8) -> [f32; 8] {
    let mut out = [f32::NAN; 8];
    s.store_f32x8(v, &mut out);
    out
}

#[inline(always)]
fn sixteen<S: Simd>(s: S, v: S::F32x16) -> [f32; 16] {
    let mut out = [f32::NAN; 16];
    s.store_f32x16(v, &mut out);
    out
}

/// The same bits; of NaN, any.
#[track_caller]
fn same<const N: usize>(level: Level, actual: [f32; N], expected: [f32; N]) {
    for i in 0..N {
        let alike =
            actual[i].to_bits() == expected[i].to_bits() || actual[i].is_nan() && expected[i].is_nan();
        assert!(alike, "lane {i} at {level}: {:?} is not {:?}", actual, expected);
    }
}

fn fma(level: Level, a: f32, b: f32, c: f32) -> f32 {
    if level == Level::Portable { a * b + c } else { a.mul_add(b, c) }
}

struct Floats;

impl Kernel for Floats {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(3);
        let level = S::LEVEL;
        for _ in 0..500 {
            let (a, b, c) = (random.floats::<8>(), random.floats::<8>(), random.floats::<8>());
            let [va, vb, vc] = [&a, &b, &c].map(|x| s.load_f32x8(x));
            let lanes = |f: &dyn Fn(usize) -> f32| std::array::from_fn(f);
            same(level, eight(s, va), a);
            same(level, eight(s, s.splat_f32x8(a[0])), [a[0]; 8]);
            same(level, eight(s, s.add_f32x8(va, vb)), lanes(&|i| a[i] + b[i]));
            same(level, eight(s, s.mul_f32x8(va, vb)), lanes(&|i| a[i] * b[i]));
            same(level, eight(s, s.fma_f32x8(va, vb, vc)), lanes(&|i| fma(level, a[i], b[i], c[i])));
            let mut bytes = [0; 33];
            a.iter()
                .zip(bytes[1..].chunks_exact_mut(4))
                .for_each(|(x, to)| to.copy_from_slice(&x.to_le_bytes()));
            same(level, eight(s, s.load_f32x8_bytes(bytes[1..].first_chunk().unwrap())), a);
            let sum = |x: &[f32; 8]| ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
            let d = random.floats::<8>();
            same(level, s.sum4([va, vb, vc, s.load_f32x8(&d)]), [&a, &b, &c, &d].map(sum));

            let (a, b, c) = (random.floats::<16>(), random.floats::<16>(), random.floats::<16>());
            let [va, vb, vc] = [&a, &b, &c].map(|x| s.load_f32x16(x));
            let lanes = |f: &dyn Fn(usize) -> f32| std::array::from_fn(f);
            same(level, sixteen(s, va), a);
            same(level, sixteen(s, s.splat_f32x16(a[0])), [a[0]; 16]);
            same(level, sixteen(s, s.add_f32x16(va, vb)), lanes(&|i| a[i] + b[i]));
            same(level, sixteen(s, s.mul_f32x16(va, vb)), lanes(&|i| a[i] * b[i]));
            same(level, sixteen(s, s.fma_f32x16(va, vb, vc)), lanes(&|i| fma(level, a[i], b[i], c[i])));
        }
    }
}

#[test]
fn float_lanes_round_as_the_standard_says() {
    Isa::available().for_each(|isa| isa.run(Floats));
}

struct Halves;

impl Kernel for Halves {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let level = S::LEVEL;
        for first in (0..=u16::MAX).step_by(8) {
            let bits: [u16; 8] = std::array::from_fn(|i| first + i as u16);
            let mut bytes = [0; 16];
            bits.iter()
                .zip(bytes.chunks_exact_mut(2))
                .for_each(|(b, to)| to.copy_from_slice(&b.to_le_bytes()));
            let wide = bits.map(|b| f16::from_bits(b).to_f32());
            same(level, eight(s, s.load_f16x8(&bytes)), wide);
            same(level, eight(s, s.load_bf16x8(&bytes)), bits.map(|b| bf16::from_bits(b).to_f32()));
            same(level, eight(s, s.splat_f16(bits[3])), [wide[3]; 8]);
            let mut in_lanes = [0.0; 8];
            for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
                in_lanes[lane] = wide[block];
            }
            same(level, eight(s, s.block_f16(bits)), in_lanes);
            for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
                in_lanes[lane] = if block < 4 { wide[block] } else { 0.0 };
            }
            same(level, eight(s, s.block_f16_half([bits[0], bits[1], bits[2], bits[3]])), in_lanes);
        }
    }
}

#[test]
fn all_float16_and_bfloat16_values_widen_to_their_own() {
    Isa::available().for_each(|isa| isa.run(Halves));
}

struct Integers;

impl Kernel for Integers {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(4);
        let level = S::LEVEL;
        let mut any = || match random.next() % 6 {
            0 => i32::MIN,
            1 => i32::MAX,
            // Halfway between two floats.
            2 => (1 << 24 | random.next() as i32 & 0xff) * 2 + 1,
            _ => random.next() as i32,
        };
        for _ in 0..500 {
            let (a, b): ([i32; 8], [i32; 8]) =
                (std::array::from_fn(|_| any()), std::array::from_fn(|_| any()));
            same(level, eight(s, s.to_f32x8(s.i32x8(&a))), a.map(|a| a as f32));
            for factor in [0, 1, 8, 16, 32, 128, -3, any()] {
                let result = s.sub_scaled(s.i32x8(&a), s.i32x8(&b), factor);
                let expected = std::array::from_fn(|i| a[i].wrapping_sub(b[i].wrapping_mul(factor)) as f32);
                same(level, eight(s, s.to_f32x8(result)), expected);
            }
            let bytes: [u8; 8] = std::array::from_fn(|_| any() as u8);
            let mut in_lanes = [0.0; 8];
            for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
                in_lanes[lane] = f32::from(bytes[block]);
            }
            same(level, eight(s, s.block_u8(u64::from_le_bytes(bytes))), in_lanes);

            let (a, b): ([i32; 16], [i32; 16]) =
                (std::array::from_fn(|_| any()), std::array::from_fn(|_| any()));
            let (va, vb) = (s.load_i32x16(&a), s.load_i32x16(&b));
            let float = |v: S::I32x16| sixteen(s, s.to_f32x16(v));
            same(level, float(va), a.map(|a| a as f32));
            same(level, float(s.zero_i32x16()), [0.0; 16]);
            same(level, float(s.splat_i32x16(a[0])), [a[0] as f32; 16]);
            let lanes = |f: &dyn Fn(i32, i32) -> i32| std::array::from_fn(|i| f(a[i], b[i]) as f32);
            same(level, float(s.add_i32x16(va, vb)), lanes(&|a, b| a.wrapping_add(b)));
            same(level, float(s.sub_i32x16(va, vb)), lanes(&|a, b| a.wrapping_sub(b)));
            same(level, float(s.mul_i32x16(va, vb)), lanes(&|a, b| a.wrapping_mul(b)));
        }
    }
}

#[test]
fn integer_lanes_wrap_and_become_the_nearest_floats() {
    Isa::available().for_each(|isa| isa.run(Integers));
}
