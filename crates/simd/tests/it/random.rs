//! Numbers that look random and are the same in every run (SplitMix64).

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }

    /// Within `least..=most`; the ends often.
    pub(crate) fn within(&mut self, least: i32, most: i32) -> i32 {
        match self.next() % 8 {
            0 => least,
            1 => most,
            _ => least + (self.next() % (most.abs_diff(least) as u64 + 1)) as i32,
        }
    }

    /// Any finite value, of moderate size mostly.
    pub(crate) fn float(&mut self) -> f32 {
        let unit = (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        match self.next() % 8 {
            0 => 0.0,
            1 => unit * 1e30,
            2 => unit * 1e-40,
            _ => unit * 10.0,
        }
    }

    pub(crate) fn floats<const N: usize>(&mut self) -> [f32; N] {
        std::array::from_fn(|_| self.float())
    }
}
