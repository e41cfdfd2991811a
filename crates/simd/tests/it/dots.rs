//! Exact sums of codes times activations.

use heirloom_simd::{COARSE, HalfActivations, Isa, Kernel, LANE_OF_BLOCK, Simd};

use crate::random::Random;

/// The codes of a half, as registers hold them.
type Half = [[u8; 64]; 2];

/// One step: two halves of codes and of activations, and the scales of its groups.
struct Step {
    codes: [Half; 2],
    x: [HalfActivations; 2],
    scales: [u8; 16],
}

impl Step {
    /// Codes of bytes that `code` makes, activations within their range.
    fn random(random: &mut Random, mut code: impl FnMut(&mut Random) -> u8) -> Step {
        let codes = std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(|_| code(random))));
        let x = std::array::from_fn(|_| {
            [127, 32].map(|most| {
                std::array::from_fn(|_| std::array::from_fn(|_| random.within(-most, most) as u8))
            })
        });
        let scales = std::array::from_fn(|_| random.within(-128, 127) as u8);
        Step { codes, x, scales }
    }

    /// All alike, as large as they may be.
    fn extreme(code: u8, [coarse, fine]: [i8; 2], scale: i8) -> Step {
        let part = |x: i8| [[x as u8; 64]; 2];
        Step { codes: [[[code; 64]; 2]; 2], x: [[part(coarse), part(fine)]; 2], scales: [scale as u8; 16] }
    }

    /// Of each block, the sum of `value(code) * x * scale`, in 64 bits.
    fn expected(&self, value: impl Fn(u8) -> i64, scaled: bool) -> [i64; 8] {
        std::array::from_fn(|block| {
            let (half, quarter) = (block / 4, block % 4);
            let mut sum = 0;
            for group in 0..2 {
                for i in 0..16 {
                    let at = 16 * quarter + i;
                    let part = |part: usize| i64::from(self.x[half][part][group][at] as i8);
                    let x = i64::from(COARSE) * part(0) + part(1);
                    let scale = if scaled { i64::from(self.scales[2 * block + group] as i8) } else { 1 };
                    sum += value(self.codes[half][group][at]) * x * scale;
                }
            }
            sum
        })
    }

    fn sum_of_x(&self, block: usize) -> i64 {
        let (half, quarter) = (block / 4, block % 4);
        let part = |part: usize| -> i64 {
            let of = |r: usize| &self.x[half][part][r][16 * quarter..][..16];
            of(0).iter().chain(of(1)).map(|x| i64::from(*x as i8)).sum()
        };
        i64::from(COARSE) * part(0) + part(1)
    }
}

/// Whether eight lanes hold exactly the blocks' values: their difference, as floats, is 0 only if it is 0.
#[inline(always)]
fn assert_blocks<S: Simd>(s: S, lanes: S::I32x8, expected: [i64; 8], what: &str) {
    let mut in_lanes = [0; 8];
    for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
        in_lanes[lane] = i32::try_from(expected[block]).expect("the documented ranges fit 32 bits");
    }
    let mut difference = [f32::NAN; 8];
    s.store_f32x8(s.to_f32x8(s.sub_scaled(lanes, s.i32x8(&in_lanes), 1)), &mut difference);
    assert_eq!(difference, [0.0; 8], "{what} at {}: not {in_lanes:?}", S::LEVEL);
}

#[inline(always)]
fn check_dot<S: Simd>(s: S, max: u8, step: &Step) {
    let halves = [0, 1].map(|half| s.dot(max, step.codes[half].map(|c| s.load(&c)), &step.x[half]));
    assert_blocks(s, s.join(halves), step.expected(i64::from, false), "dot");
    let first = s.join([halves[0], s.zero_half()]);
    let mut expected = step.expected(i64::from, false);
    expected[4..].fill(0);
    assert_blocks(s, first, expected, "dot of half a step");
}

#[inline(always)]
fn check_signed<S: Simd>(s: S, step: &Step) {
    let halves = [0, 1].map(|half| s.dot_signed(step.codes[half].map(|c| s.load(&c)), &step.x[half]));
    let mut expected = step.expected(|code| i64::from(code as i8), false);
    for (block, expected) in expected.iter_mut().enumerate() {
        *expected += i64::from(S::SIGNED_OFFSET) * step.sum_of_x(block);
    }
    assert_blocks(s, s.join(halves), expected, "dot_signed");
}

#[inline(always)]
fn check_scaled<S: Simd>(s: S, step: &Step) {
    let halves = [0, 1].map(|half| {
        let scales = s.quarter_scales(&step.scales, half);
        s.dot_scaled(step.codes[half].map(|c| s.load(&c)), &step.x[half], scales)
    });
    assert_blocks(s, s.join(halves), step.expected(i64::from, true), "dot_scaled");
    let codes = [0, 1].map(|half| step.codes[half].map(|c| s.load(&c)));
    let at_once = s.dot_groups(codes, &step.x, &step.scales);
    assert_blocks(s, at_once, step.expected(i64::from, true), "dot_groups");
}

#[inline(always)]
fn check_scale_sums<S: Simd>(s: S, random: &mut Random) {
    let most = [16 * 127, 16 * 32];
    let scales: [u8; 16] = std::array::from_fn(|_| random.within(-128, 127) as u8);
    let sums: [[i16; 16]; 2] = most.map(|most| std::array::from_fn(|_| random.within(-most, most) as i16));
    let expected = std::array::from_fn(|block| {
        let lane = LANE_OF_BLOCK[block];
        (0..2)
            .map(|group| {
                let of = |part: usize| i64::from(sums[part][2 * lane + group]);
                i64::from(scales[2 * block + group] as i8) * (i64::from(COARSE) * of(0) + of(1))
            })
            .sum()
    });
    assert_blocks(s, s.scale_sums(&scales, &sums), expected, "scale_sums");
}

struct Dots;

impl Kernel for Dots {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(2);
        let signs = [[127, 32], [-127, 32], [127, -32], [-127, -32], [0, 0]];
        for _ in 0..200 {
            check_dot(s, 15, &Step::random(&mut random, |r| r.within(0, 15) as u8));
            check_dot(s, 31, &Step::random(&mut random, |r| r.within(0, 31) as u8));
            check_dot(s, 63, &Step::random(&mut random, |r| r.within(0, 63) as u8));
            check_signed(s, &Step::random(&mut random, |r| r.within(-128, 127) as u8));
            check_scaled(s, &Step::random(&mut random, |r| r.within(0, 63) as u8));
            check_scale_sums(s, &mut random);
        }
        for x in signs {
            check_dot(s, 15, &Step::extreme(15, x, 1));
            check_dot(s, 31, &Step::extreme(31, x, 1));
            check_dot(s, 63, &Step::extreme(63, x, 1));
            for code in [-128, -127, -1, 0, 1, 127] {
                check_signed(s, &Step::extreme(code as i8 as u8, x, 1));
            }
            for scale in [-128, -1, 0, 1, 127] {
                check_scaled(s, &Step::extreme(63, x, scale));
            }
        }
    }
}

#[test]
fn sums_of_products_are_exact_to_the_ends_of_their_ranges() {
    Isa::available().for_each(|isa| isa.run(Dots));
}
