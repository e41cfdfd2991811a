//! A short hash with a random key: vocabularies are hashed half a million times while they load, and a file must not
//! be able to choose collisions.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers with one key.
#[derive(Clone)]
pub(crate) struct Keyed {
    key: u64,
}

impl Keyed {
    /// A new random key.
    pub(crate) fn new() -> Self {
        Self { key: RandomState::new().hash_one(0u8) | 1 }
    }

    /// The hash of `bytes`.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { state: self.key, key: self.key }
    }
}

/// The state of a hash: each word is folded in by the two halves of a product.
pub(crate) struct Folded {
    state: u64,
    key: u64,
}

impl Folded {
    fn fold(&mut self, word: u64) {
        // An odd constant without pattern: the golden ratio's fraction.
        let product = u128::from(self.state ^ word) * u128::from(self.key ^ 0x9E37_79B9_7F4A_7C15);
        self.state = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.fold(rest);
        self.fold(bytes.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
        self.fold(0);
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_spread_over_their_low_and_high_bits() {
        let keyed = Keyed::new();
        let words: Vec<String> = (0..4096).map(|i| format!("token{i}")).collect();
        let hashes: Vec<u64> = words.iter().map(|w| keyed.bytes(w.as_bytes())).collect();
        // 4,096 random draws from 65,536 leave about 3,970 different ones.
        for shift in [0, 48] {
            let different: HashSet<u64> = hashes.iter().map(|h| h >> shift & 0xFFFF).collect();
            assert!(different.len() > 3_850, "{} at {shift}", different.len());
        }
        let pairs: HashSet<u64> = (0..4096u64).map(|i| keyed.hash_one(i << 32 | (i * 7)) & 0xFFFF).collect();
        assert!(pairs.len() > 3_850, "{}", pairs.len());
        assert_ne!(keyed.bytes(b"ab\0"), keyed.bytes(b"ab"));
        assert_ne!(keyed.bytes(b"ab"), Keyed::new().bytes(b"ab"));
    }
}
