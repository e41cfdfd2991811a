//! Numbers that look random and are the same in every run (SplitMix64).

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Uniform in 0.0..1.0.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normally distributed values of standard deviation 1 (Box-Muller).
    pub(crate) fn normal(&mut self, count: usize) -> Vec<f32> {
        let mut one = || {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            (radius * (std::f64::consts::TAU * self.unit()).cos()) as f32
        };
        (0..count).map(|_| one()).collect()
    }
}
