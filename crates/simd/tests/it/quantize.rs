//! Quantizing activations.

use heirloom_simd::{BLOCK, COARSE, Isa, Kernel, Simd};

use crate::random::Random;

struct Rounding;

#[inline(always)]
fn check_round<S: Simd>(s: S, x: &[f32; BLOCK], factor: f32) {
    let mut to = [[[0xaau8; 16]; 2]; 2];
    let sums = s.round_block(x, factor, to.each_mut().map(|part| part.each_mut()));
    let mut expected = [[[0i16; 2]; 2]; 2];
    for (i, x) in x.iter().enumerate() {
        let (coarse, fine) = (to[0][i / 16][i % 16] as i8, to[1][i / 16][i % 16] as i8);
        let code = (x * factor).round_ties_even() as i32;
        assert_eq!(COARSE * i32::from(coarse) + i32::from(fine), code, "{x} * {factor} at {}", S::LEVEL);
        assert!((-127..=127).contains(&coarse) && (-32..=32).contains(&fine), "{coarse}, {fine}");
        expected[0][i / 16][i % 4 / 2] += i16::from(coarse);
        expected[1][i / 16][i % 4 / 2] += i16::from(fine);
    }
    assert_eq!(sums, expected, "sums at {}", S::LEVEL);
}

impl Kernel for Rounding {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // All halves of the range: whole numbers, and ties between them.
        for first in (-16256..=16256).step_by(BLOCK) {
            check_round(s, &std::array::from_fn(|i| ((first + i as i32).min(16256)) as f32), 0.5);
        }
        let mut random = Random(7);
        for _ in 0..500 {
            let x: [f32; BLOCK] = std::array::from_fn(|_| random.within(-10_000, 10_000) as f32 / 7.0);
            let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            check_round(s, &x, 8128.0 / largest);
        }
        check_round(s, &[1.0; BLOCK], 8128.4);
        check_round(s, &[-1.0; BLOCK], 8128.4);
        check_round(s, &[0.0; BLOCK], 0.0);
    }
}

#[test]
fn activations_are_rounded_to_even_and_split_in_two_parts() {
    Isa::available().for_each(|isa| isa.run(Rounding));
}

struct Largest;

impl Kernel for Largest {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(8);
        for at in 0..BLOCK {
            let mut x = random.floats::<BLOCK>();
            let expected = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            assert_eq!(s.largest(&x), expected, "at {}", S::LEVEL);
            for (value, expected) in
                [(-2e30, 2e30), (f32::NEG_INFINITY, f32::INFINITY), (f32::INFINITY, f32::INFINITY)]
            {
                x[at] = value;
                assert_eq!(s.largest(&x), expected, "{value} at place {at}, {}", S::LEVEL);
            }
            x[at] = -f32::NAN;
            assert!(s.largest(&x).is_nan(), "place {at}, {}", S::LEVEL);
        }
        assert_eq!(s.largest(&[-0.0; BLOCK]).to_bits(), 0);
    }
}

#[test]
fn the_largest_magnitude_is_found_wherever_it_is() {
    Isa::available().for_each(|isa| isa.run(Largest));
}
