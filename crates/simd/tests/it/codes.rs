//! What unpacking is written with.

use heirloom_simd::{Isa, Kernel, Simd, prefetch};

use crate::random::Random;

struct Bytes;

fn shifted(codes: &[u8; 64], shift: impl Fn(u64, usize) -> u64) -> [u8; 64] {
    let mut out = [0; 64];
    for lane in 0..8 {
        let word = u64::from_le_bytes(codes[8 * lane..8 * lane + 8].try_into().unwrap());
        out[8 * lane..8 * lane + 8].copy_from_slice(&shift(word, lane / 2).to_le_bytes());
    }
    out
}

#[inline(always)]
fn stored<S: Simd>(s: S, codes: S::Codes) -> [u8; 64] {
    let mut out = [0xaa; 64];
    s.store(codes, &mut out);
    out
}

#[inline(always)]
fn shifts<const A: i64, const B: i64, const C: i64, const D: i64, S: Simd>(s: S, codes: &[u8; 64]) {
    let by = [A, B, C, D];
    let right = stored(s, s.shr_quarters::<A, B, C, D>(s.load(codes)));
    assert_eq!(right, shifted(codes, |word, quarter| word >> by[quarter]), "{} >> {by:?}", S::LEVEL);
    let left = stored(s, s.shl_quarters::<A, B, C, D>(s.load(codes)));
    assert_eq!(left, shifted(codes, |word, quarter| word << by[quarter]), "{} << {by:?}", S::LEVEL);
}

impl Kernel for Bytes {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(1);
        for _ in 0..100 {
            let (a, b) = (random.bytes::<64>(), random.bytes::<64>());
            assert_eq!(stored(s, s.load(&a)), a);
            assert_eq!(stored(s, s.splat(b[0])), [b[0]; 64]);
            let both = |f: fn(u8, u8) -> u8| std::array::from_fn(|i| f(a[i], b[i]));
            assert_eq!(stored(s, s.and(s.load(&a), s.load(&b))), both(|a, b| a & b));
            assert_eq!(stored(s, s.or(s.load(&a), s.load(&b))), both(|a, b| a | b));
            assert_eq!(stored(s, s.xor(s.load(&a), s.load(&b))), both(|a, b| a ^ b));
            shifts::<0, 0, 0, 0, S>(s, &a);
            shifts::<4, 4, 4, 4, S>(s, &a);
            shifts::<0, 4, 0, 4, S>(s, &a);
            shifts::<0, 2, 4, 6, S>(s, &a);
            shifts::<7, 6, 5, 3, S>(s, &a);
            shifts::<63, 1, 8, 33, S>(s, &a);

            // Quarters lie anywhere and overlap, at odd addresses too.
            let at: [usize; 4] = std::array::from_fn(|_| random.next() as usize % 49);
            let quarters = at.map(|at| a[at..].first_chunk::<16>().unwrap());
            let expected: Vec<u8> = quarters.iter().flat_map(|q| q.iter().copied()).collect();
            assert_eq!(stored(s, s.load_quarters(quarters))[..], expected);

            let clear = a.map(|code| code & !16);
            let bits: [[u8; 4]; 4] = std::array::from_fn(|_| random.bytes());
            let loaded = s.load_bits(bits.each_ref());
            for upper in [false, true] {
                let with = if upper {
                    stored(s, s.set_fifth_bits::<true>(s.load(&clear), loaded))
                } else {
                    stored(s, s.set_fifth_bits::<false>(s.load(&clear), loaded))
                };
                for (i, with) in with.into_iter().enumerate() {
                    let bit = u32::from_le_bytes(bits[i / 16]) >> (16 * usize::from(upper) + i % 16) & 1;
                    assert_eq!(with, clear[i] | (bit as u8) << 4, "{}, byte {i}", S::LEVEL);
                }
            }
        }
    }
}

struct SixBits;

impl Kernel for SixBits {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(5);
        for _ in 0..50 {
            let [low, high]: [[u8; 64]; 2] =
                std::array::from_fn(|_| std::array::from_fn(|_| random.within(0, 255) as u8));
            let codes = stored(s, s.six_bits(s.load(&low), s.load(&high)));
            for i in 0..64 {
                let expected = low[i] & 15 | (high[i] >> (2 * (i / 16)) & 3) << 4;
                assert_eq!(codes[i], expected, "{}, byte {i}", S::LEVEL);
            }
        }
    }
}

#[test]
fn six_bits_join_a_low_nibble_and_the_quarters_pair() {
    Isa::available().for_each(|isa| isa.run(SixBits));
}

#[test]
fn bytes_are_loaded_joined_shifted_and_stored() {
    Isa::available().for_each(|isa| isa.run(Bytes));
}

#[test]
fn a_prefetch_behind_the_end_does_nothing() {
    let bytes = [1, 2, 3];
    for at in [0, 2, 3, 4096, 1 << 20] {
        prefetch::<false>(&bytes, at);
        prefetch::<true>(&bytes, at);
    }
    assert_eq!(bytes, [1, 2, 3]);
}
