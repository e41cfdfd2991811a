//! Random numbers: the Mersenne Twister (MT19937) of Matsumoto and Nishimura, seeded and read as NumPy's `RandomState` does,
//! so that a seed gives what the ONNX reference gives for it.

use std::hash::{BuildHasher, Hasher};

const N: usize = 624;
const M: usize = 397;

/// A stream of random numbers.
pub(crate) struct Random {
    state: [u32; N],
    at: usize,
    /// Normal numbers come in pairs.
    second: Option<f64>,
}

impl Random {
    /// The stream of a seed.
    pub(crate) fn seeded(seed: u32) -> Random {
        let mut state = [seed; N];
        for at in 1..N {
            let before = state[at - 1];
            state[at] = 1_812_433_253u32.wrapping_mul(before ^ before >> 30).wrapping_add(at as u32);
        }
        Random { state, at: N, second: None }
    }

    /// The stream of an attribute; without one, a stream of its own.
    pub(crate) fn of(seed: Option<f32>) -> Random {
        match seed {
            Some(seed) => Random::seeded(seed as i64 as u32),
            None => {
                let entropy = std::collections::hash_map::RandomState::new().build_hasher().finish();
                Random::seeded((entropy ^ entropy >> 32) as u32)
            }
        }
    }

    fn word(&mut self) -> u32 {
        if self.at == N {
            for k in 0..N {
                let y = self.state[k] & 0x8000_0000 | self.state[(k + 1) % N] & 0x7fff_ffff;
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[k] = self.state[(k + M) % N] ^ y >> 1 ^ twist;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    /// Evenly distributed in 0..1, in steps of 2⁻⁵³.
    pub(crate) fn uniform(&mut self) -> f64 {
        let (a, b) = (f64::from(self.word() >> 5), f64::from(self.word() >> 6));
        (a * 67_108_864.0 + b) / 9_007_199_254_740_992.0
    }

    /// Normally distributed with mean 0 and deviation 1 (Marsaglia's polar method).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.second = Some(scale * x);
                return scale * y;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_numbers_of_numpy() {
        // np.random.seed(0); np.random.uniform(size=3), then np.random.seed(0); np.random.normal(size=3)
        let mut random = Random::seeded(0);
        let uniform: Vec<f64> = (0..3).map(|_| random.uniform()).collect();
        assert_eq!(uniform, [0.548_813_503_927_324_8, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9]);
        let mut random = Random::seeded(0);
        let normal: Vec<f64> = (0..3).map(|_| random.normal()).collect();
        assert_eq!(normal, [1.764_052_345_967_664, 0.400_157_208_367_223_3, 0.978_737_984_105_739_2]);
    }

    #[test]
    fn streams_without_a_seed_differ() {
        assert_ne!(Random::of(None).uniform(), Random::of(None).uniform());
    }
}
