//! Sixteen rows side by side.

use heirloom_simd::{Isa, Kernel, Simd};

use crate::random::Random;

#[inline(always)]
fn assert_rows<S: Simd>(s: S, sums: S::I32x16, expected: [i32; 16], what: &str) {
    let mut difference = [f32::NAN; 16];
    s.store_f32x16(s.to_f32x16(s.sub_i32x16(sums, s.load_i32x16(&expected))), &mut difference);
    assert_eq!(difference, [0.0; 16], "{what} at {}: not {expected:?}", S::LEVEL);
}

struct Transpose;

impl Kernel for Transpose {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut random = Random(5);
        for _ in 0..50 {
            let rows: [[u8; 64]; 16] = std::array::from_fn(|_| random.bytes());
            let mut out = [[0; 64]; 16];
            s.transpose(rows.map(|row| s.load(&row)), &mut out);
            for (group, out) in out.iter().enumerate() {
                let expected: Vec<u8> =
                    rows.iter().flat_map(|row| row[4 * group..4 * group + 4].to_vec()).collect();
                assert_eq!(out[..], expected, "group {group} at {}", S::LEVEL);
            }
        }
    }
}

#[test]
fn a_panel_has_four_bytes_of_each_row() {
    Isa::available().for_each(|isa| isa.run(Transpose));
}

/// `registers` times 16 codes of 16 rows, and as many activations of `M` rows.
struct Sums<const M: usize> {
    codes: Vec<[[u8; 64]; 4]>,
    x: Vec<[[u8; 16]; M]>,
    eights: i32,
}

impl<const M: usize> Sums<M> {
    fn random(
        random: &mut Random,
        registers: usize,
        eights: i32,
        mut code: impl FnMut(&mut Random) -> u8,
        mut x: impl FnMut(&mut Random) -> i8,
    ) -> Sums<M> {
        let mut codes = || std::array::from_fn(|_| std::array::from_fn(|_| code(random)));
        let codes = (0..registers).map(|_| codes()).collect();
        let mut random = Random(registers as u64);
        let mut x = || std::array::from_fn(|_| std::array::from_fn(|_| x(&mut random) as u8));
        let x = (0..registers).map(|_| x()).collect();
        Sums { codes, x, eights }
    }

    /// -8 times the sums of activations at places 0 and 1 of every four, and at 2 and 3.
    fn start(&self, m: usize) -> [i16; 2] {
        [0, 1].map(|pair| {
            let x = self.x.iter().flat_map(|x| x[m].chunks_exact(4));
            x.map(|x| -8 * x[2 * pair..][..2].iter().map(|x| i16::from(*x as i8)).sum::<i16>()).sum()
        })
    }

    fn expected(&self, m: usize, row: usize) -> i32 {
        let mut sum = 0;
        for (codes, x) in self.codes.iter().zip(&self.x) {
            for (four, codes) in codes.iter().enumerate() {
                for i in 0..4 {
                    let code = i32::from(codes[4 * row + i]) - 8 * self.eights;
                    sum += code * i32::from(x[m][4 * four + i] as i8);
                }
            }
        }
        sum
    }

    #[inline(always)]
    fn check<S: Simd>(&self, s: S) {
        let mut sums: [S::Sum; M] = std::array::from_fn(|m| s.start(&self.start(m), self.eights));
        for (codes, x) in self.codes.iter().zip(&self.x) {
            s.add_products(&mut sums, codes, x.each_ref());
        }
        for (m, sum) in sums.into_iter().enumerate() {
            let expected: [i32; 16] = std::array::from_fn(|row| self.expected(m, row));
            assert_rows(s, s.widen(sum), expected, "widen");
            for scales in [[1; 16], [64; 16], [1024; 16], std::array::from_fn(|i| [-128, 127, -1, 0][i % 4])]
            {
                let scaled = s.widen_scaled(sum, &scales.map(|scale| s.row_scale(scale)));
                let expected = std::array::from_fn(|row| expected[row] * i32::from(scales[row]));
                assert_rows(s, scaled, expected, "widen_scaled");
            }
        }
    }
}

struct Products;

#[inline(always)]
fn products<S: Simd, const M: usize>(s: S) {
    let mut random = Random(6 + M as u64);
    let coarse = |random: &mut Random| random.within(-127, 127) as i8;
    let fine = |random: &mut Random| random.within(-32, 32) as i8;
    for _ in 0..20 {
        // A block: codes less offset within -16..=15.
        Sums::<M>::random(&mut random, 2, 0, |r| r.within(0, 15) as u8, coarse).check(s);
        Sums::<M>::random(&mut random, 2, 1, |r| r.within(0, 15) as u8, coarse).check(s);
        Sums::<M>::random(&mut random, 2, 2, |r| r.within(0, 31) as u8, coarse).check(s);
        Sums::<M>::random(&mut random, 2, 2, |r| r.within(0, 31) as u8, fine).check(s);
        // A group: within -32..=31.
        Sums::<M>::random(&mut random, 1, 4, |r| r.within(0, 63) as u8, coarse).check(s);
        Sums::<M>::random(&mut random, 1, 4, |r| r.within(0, 63) as u8, fine).check(s);
        if !S::NARROW {
            // Signed bytes, 128 larger.
            Sums::<M>::random(&mut random, 2, 16, |r| r.next() as u8, coarse).check(s);
        }
    }
    // The largest sums; the 16-bit parts of the narrow ones wrap on the way.
    for x in [127, -127, 32, -32] {
        for code in [0, 31] {
            Sums::<M>::random(&mut random, 2, 2, |_| code, |_| x).check(s);
        }
        for code in [0, 63] {
            Sums::<M>::random(&mut random, 1, 4, |_| code, |_| x).check(s);
        }
        for code in [0, 255] {
            if !S::NARROW {
                Sums::<M>::random(&mut random, 2, 16, |_| code, |_| x).check(s);
            }
        }
    }
}

impl Kernel for Products {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        products::<S, 1>(s);
        products::<S, 2>(s);
        products::<S, 3>(s);
        products::<S, 4>(s);
        products::<S, 5>(s);
        products::<S, 8>(s);
    }
}

#[test]
fn products_of_panels_are_exact_though_narrow_sums_wrap_on_the_way() {
    Isa::available().for_each(|isa| isa.run(Products));
}
