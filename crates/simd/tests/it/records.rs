//! What is read of records of one block, at every level.

use half::f16;
use heirloom_simd::{Isa, Kernel, LANE_OF_BLOCK, Simd};

use crate::random::Random;

struct Records;

/// Eight records, of which no two bytes in a row at an even place are a FLOAT16 that is not finite.
fn records<const RECORD: usize>(random: &mut Random) -> Vec<u8> {
    (0..8 * RECORD).map(|_| random.next() as u8 & 0xbb).collect()
}

#[inline(always)]
fn lanes<S: Simd>(s: S, register: S::F32x8) -> [f32; 8] {
    let mut out = [0.0; 8];
    s.store_f32x8(register, &mut out);
    out
}

#[inline(always)]
fn halves<const RECORD: usize, const AT: usize, S: Simd>(s: S, records: &[u8]) {
    let (mut eight, mut four) = ([0.0; 8], [0.0; 8]);
    for (block, lane) in LANE_OF_BLOCK.into_iter().enumerate() {
        let at = block * RECORD + AT;
        eight[lane] = f16::from_le_bytes([records[at], records[at + 1]]).to_f32();
        four[lane] = if block < 4 { eight[lane] } else { 0.0 };
    }
    assert_eq!(lanes(s, s.record_f16::<RECORD, AT>(records)), eight, "{} {RECORD} {AT}", S::LEVEL);
    // Nothing behind the four records is read.
    let first = &records[..4 * RECORD].to_vec();
    assert_eq!(lanes(s, s.record_f16_half::<RECORD, AT>(first)), four, "{} {RECORD} {AT}", S::LEVEL);
}

#[inline(always)]
fn quarters<const RECORD: usize, const AT: usize, S: Simd>(s: S, records: &[u8]) {
    let mut out = [0; 64];
    s.store(s.record_quarters::<RECORD, AT>(records), &mut out);
    let expected: Vec<u8> = (0..64).map(|i| records[i / 16 * RECORD + AT + i % 16]).collect();
    assert_eq!(out[..], expected, "{} {RECORD} {AT}", S::LEVEL);
}

#[inline(always)]
fn bits<const RECORD: usize, const AT: usize, S: Simd>(s: S, records: &[u8]) {
    let of = |record: usize| records[record * RECORD + AT..].first_chunk().unwrap();
    let (expected, found) = (s.load_bits([of(0), of(1), of(2), of(3)]), s.record_bits::<RECORD, AT>(records));
    for (upper, bits) in [(false, [expected, found]), (true, [expected, found])] {
        let [expected, found] = bits.map(|bits| {
            let mut out = [0; 64];
            let zero = s.splat(0);
            let codes = if upper {
                s.set_fifth_bits::<true>(zero, bits)
            } else {
                s.set_fifth_bits::<false>(zero, bits)
            };
            s.store(codes, &mut out);
            out
        });
        assert_eq!(found, expected, "{} {RECORD} {AT}", S::LEVEL);
    }
}

impl Kernel for Records {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(3);
        for _ in 0..50 {
            let q4_0 = &records::<18>(&mut random);
            quarters::<18, 2, S>(s, &q4_0[..72]);
            halves::<18, 0, S>(s, q4_0);
            let q4_1 = &records::<20>(&mut random);
            quarters::<20, 4, S>(s, &q4_1[..80]);
            halves::<20, 0, S>(s, q4_1);
            halves::<20, 2, S>(s, q4_1);
            let q5_0 = &records::<22>(&mut random);
            quarters::<22, 6, S>(s, &q5_0[..88]);
            bits::<22, 2, S>(s, &q5_0[..88]);
            halves::<22, 0, S>(s, q5_0);
            let q5_1 = &records::<24>(&mut random);
            quarters::<24, 8, S>(s, &q5_1[..96]);
            bits::<24, 4, S>(s, &q5_1[..96]);
            halves::<24, 0, S>(s, q5_1);
            halves::<24, 2, S>(s, q5_1);
            halves::<34, 0, S>(s, &records::<34>(&mut random));
        }
    }
}

#[test]
fn the_parts_of_records_are_where_their_layout_says() {
    Isa::available().for_each(|isa| isa.run(Records));
}
