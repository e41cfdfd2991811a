//! Activations as products take them: as they are, and as two parts in blocks of 32 signed bytes with a scale.
//!
//! One part alone is too coarse: a model of the size of SmolLM2 then misses its float logits by far more than its
//! quantized weights do. The second part holds what the first one left, so that the two together are as precise as 16
//! bits. A product multiplies each weight that it has unpacked with both parts.
#![allow(unsafe_code)]

use heirloom_runtime::Team;
use heirloom_simd::{BLOCK, BLOCKS, Isa, Kernel, LANE_OF_BLOCK, STEP, Simd};

use super::scratch::{Plain, bytes_for, carve};
use crate::disjoint::DisjointMut;

/// The activations of one step, quantized: `x ≈ scale * code` with codes within -127..=127, for each block of 32.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct QuantizedStep {
    /// For each half the first 16 codes of its four blocks, then the last 16: the order of unpacked weights.
    pub(crate) codes: [[[u8; 64]; 2]; 2],
    /// The blocks' scales, in their lanes.
    pub(crate) scales: [f32; BLOCKS],
    /// The blocks' scales times the sums of their codes.
    pub(crate) scaled_sums: [f32; BLOCKS],
    /// The sums of the blocks' codes.
    pub(crate) sums: [i32; BLOCKS],
    /// The sums of the first and of the last 16 codes of each block, two for each lane.
    pub(crate) group_sums: [i16; 2 * BLOCKS],
    /// For each lane and group of 16: -8 times the sum of the codes at places 0 and 1 of every four, and of the others.
    pub(crate) group_starts: [[[i16; 2]; 2]; BLOCKS],
    /// The same for whole blocks.
    pub(crate) starts: [[i16; 2]; BLOCKS],
    _padding: [u8; 32],
}

// SAFETY: `repr(C)`; 256 + 5 * 32 + 64 bytes and the explicit padding are a multiple of the alignment of 64, so there is
// no other padding, and the fields are plain integers and floats.
unsafe impl Plain for QuantizedStep {}

/// Parts of a row of activations.
pub(crate) const PARTS: usize = 2;

/// Adding this to a float of less than 2^22 leaves the nearest integer (ties to even) in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The sums of the elements at places 0 and 1 of every four, and of the others.
#[inline(always)]
fn place_sums(codes: &[i32]) -> [i32; 2] {
    codes.as_chunks::<4>().0.iter().fold([0, 0], |[a, b], c| [a + c[0] + c[1], b + c[2] + c[3]])
}

impl QuantizedStep {
    /// Quantizes at most 256 values; what is missing counts as 0. A block with a value that is not finite gets the
    /// scale NaN, so that its products are NaN.
    #[inline(always)]
    fn fill(&mut self, x: &[f32]) {
        let mut padded = [0.0; STEP];
        for (to, x) in padded.iter_mut().zip(x) {
            *to = *x;
        }
        let (blocks, _) = padded.as_chunks::<BLOCK>();
        for (block, x) in blocks.iter().enumerate() {
            let lane = LANE_OF_BLOCK[block];
            // As integers, the bits of |x| have the order of |x|, infinity and NaN above all.
            let largest = x.iter().fold(0, |m: u32, x| m.max(x.to_bits() & 0x7fff_ffff));
            let largest = f32::from_bits(largest);
            // Below this 127 / largest overflows; the values count as 0.
            let tiny = largest < 1e-36;
            let finite = largest < f32::INFINITY;
            let inverse = if tiny || !finite { 0.0 } else { 127.0 / largest };
            let scale = match (finite, tiny) {
                (false, _) => f32::NAN,
                (_, true) => 0.0,
                _ => largest / 127.0,
            };
            let mut codes = [0i32; BLOCK];
            if finite {
                for (code, x) in codes.iter_mut().zip(x) {
                    *code = (x * inverse + ROUND).to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
                }
            }
            let (first, last) = codes.split_at(16);
            let (half, at) = (block / 4, block % 4 * 16);
            for i in 0..16 {
                self.codes[half][0][at + i] = first[i] as u8;
                self.codes[half][1][at + i] = last[i] as u8;
            }
            let [first, last] = [first, last].map(place_sums);
            let sums = [first[0] + first[1], last[0] + last[1]];
            let sum = sums[0] + sums[1];
            self.scales[lane] = scale;
            self.scaled_sums[lane] = scale * sum as f32;
            self.sums[lane] = sum;
            self.group_sums[2 * lane] = sums[0] as i16;
            self.group_sums[2 * lane + 1] = sums[1] as i16;
            self.group_starts[lane] = [first, last].map(|sums| sums.map(|s| (-8 * s) as i16));
            self.starts[lane] = [0, 1].map(|i| (-8 * (first[i] + last[i])) as i16);
        }
    }

    /// What the codes leave of the values.
    #[inline(always)]
    fn rest(&self, x: &[f32], rest: &mut [f32; STEP]) {
        for (block, (x, rest)) in x.chunks(BLOCK).zip(rest.chunks_exact_mut(BLOCK)).enumerate() {
            let scale = self.scales[LANE_OF_BLOCK[block]];
            let (half, at) = (block / 4, block % 4 * 16);
            for (i, (x, rest)) in x.iter().zip(rest).enumerate() {
                let code = self.codes[half][i / 16][at + i % 16].cast_signed();
                *rest = x - scale * f32::from(code);
            }
        }
    }
}

/// Quantizes one row to its parts, one behind the other.
struct Fill<'a> {
    x: &'a [f32],
    steps: &'a mut [QuantizedStep],
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let (coarse, fine) = self.steps.split_at_mut(self.steps.len() / PARTS);
        for ((coarse, fine), x) in coarse.iter_mut().zip(fine).zip(self.x.chunks(STEP)) {
            coarse.fill(x);
            let mut rest = [0.0; STEP];
            coarse.rest(x, &mut rest);
            fine.fill(&rest[..x.len()]);
        }
    }
}

/// Activations [rows, k], ready for the products that take them in this form.
#[derive(Clone, Copy)]
pub struct Activations<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) steps: &'a [QuantizedStep],
    pub(crate) rows: usize,
    pub(crate) k: usize,
}

impl<'a> Activations<'a> {
    /// The activations as they are, for products that take floats.
    ///
    /// # Panics
    /// When `x` has not `rows * k` elements.
    pub fn floats(x: &'a [f32], rows: usize, k: usize) -> Activations<'a> {
        assert_eq!(x.len(), rows * k, "activations are [rows, k]");
        Activations { x, steps: &[], rows, k }
    }

    /// Scratch bytes that [`Activations::quantized`] needs.
    pub fn quantized_bytes(rows: usize, k: usize) -> usize {
        bytes_for::<QuantizedStep>(rows.saturating_mul(PARTS * k.div_ceil(STEP)))
    }

    /// The activations, quantized into `scratch` too: one quantization serves all products with the same activations,
    /// whatever their formats.
    ///
    /// # Panics
    /// When `x` has not `rows * k` elements or `scratch` is too small.
    pub fn quantized(
        isa: Isa,
        x: &'a [f32],
        rows: usize,
        k: usize,
        scratch: &'a mut [u8],
        team: &dyn Team,
    ) -> Activations<'a> {
        assert_eq!(x.len(), rows * k, "activations are [rows, k]");
        let per_row = PARTS * k.div_ceil(STEP);
        let (steps, _) = carve::<QuantizedStep>(scratch, rows * per_row);
        let fill = |x: &[f32], steps: &mut [QuantizedStep]| {
            for (x, steps) in x.chunks_exact(k.max(1)).zip(steps.chunks_exact_mut(per_row.max(1))) {
                isa.run(Fill { x, steps });
            }
        };
        const ROWS: usize = 16;
        if rows <= ROWS {
            fill(x, steps);
        } else {
            let parts = DisjointMut::new(steps);
            team.run(rows.div_ceil(ROWS), &|task| {
                let (from, to) = (task * ROWS, rows.min((task + 1) * ROWS));
                // SAFETY: each task has rows of its own.
                let steps = unsafe { parts.part(from * per_row..to * per_row) };
                fill(&x[from * k..to * k], steps);
            });
        }
        Activations { x, steps, rows, k }
    }

    /// Parts of all rows.
    #[inline(always)]
    pub(crate) fn parts(&self) -> usize {
        PARTS * self.rows
    }

    /// The quantized steps of part `part`: those of row `r` are `PARTS * r` and the next.
    #[inline(always)]
    pub(crate) fn part_steps(&self, part: usize) -> &'a [QuantizedStep] {
        let per_part = self.k.div_ceil(STEP);
        &self.steps[part * per_part..(part + 1) * per_part]
    }

    /// The elements of row `row`.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [f32] {
        &self.x[row * self.k..(row + 1) * self.k]
    }
}
