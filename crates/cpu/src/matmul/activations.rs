//! Activations as products take them: as they are, and quantized in blocks of 32.
//!
//! A quantized activation is `scale * (64 * coarse + fine)` with codes of 8 bits: 8 bits alone would miss the float logits
//! of a model of the size of SmolLM2 by more than its quantized weights do.
#![allow(unsafe_code)]

use heirloom_runtime::Team;
use heirloom_simd::{BLOCK, BLOCKS, COARSE, HalfActivations, Isa, Kernel, LANE_OF_BLOCK, STEP, Simd};

use super::scratch::{Plain, bytes_for, carve};
use crate::disjoint::DisjointMut;

/// The activations of one step, quantized: `x ≈ scale * (64 * coarse + fine)`, coarse codes within -127..=127 and fine
/// ones within -32..=32, for each block of 32.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct QuantizedStep {
    /// For each half and part (coarse, fine) the first 16 codes of its four blocks, then the last 16: the order of
    /// unpacked weights.
    pub(crate) codes: [HalfActivations; 2],
    /// The blocks' scales, in their lanes.
    pub(crate) scales: [f32; BLOCKS],
    /// The blocks' scales times the sums.
    pub(crate) scaled_sums: [f32; BLOCKS],
    /// The blocks' sums of `64 * coarse + fine`.
    pub(crate) sums: [i32; BLOCKS],
    /// For each part the sums of the first and of the last 16 codes of each block, two for each lane.
    pub(crate) group_sums: [[i16; 2 * BLOCKS]; 2],
    /// For each lane, part and group of 16: -8 times the sum of the codes at places 0 and 1 of every four, and of the
    /// others.
    pub(crate) group_starts: [[[[i16; 2]; 2]; 2]; BLOCKS],
    /// The same for whole blocks.
    pub(crate) starts: [[[i16; 2]; 2]; BLOCKS],
    _padding: [u8; 32],
}

// SAFETY: `repr(C)`; 512 + 3 * 32 + 64 + 128 + 64 bytes and the explicit padding are a multiple of the alignment of 64, so
// there is no other padding, and the fields are plain integers and floats.
unsafe impl Plain for QuantizedStep {}

/// The largest `64 * coarse + fine` that is used.
const LARGEST: f32 = 127.0 * 64.0;

impl QuantizedStep {
    /// Quantizes one block. A block with a value that is not finite gets the scale NaN, so that its products are NaN.
    #[inline(always)]
    fn fill_block<S: Simd>(&mut self, s: S, block: usize, x: &[f32; BLOCK]) {
        let lane = LANE_OF_BLOCK[block];
        let largest = s.largest(x);
        // Below this the factor overflows; the values count as 0.
        let tiny = largest < 1e-34;
        let finite = largest < f32::INFINITY;
        let factor = if tiny || !finite { 0.0 } else { LARGEST / largest };
        let scale = match (finite, tiny) {
            (false, _) => f32::NAN,
            (_, true) => 0.0,
            _ => largest / LARGEST,
        };
        let x = if finite { x } else { &[0.0; BLOCK] };
        let at = block % 4;
        let to = self.codes[block / 4]
            .each_mut()
            .map(|part| part.each_mut().map(|register| &mut register.as_chunks_mut::<16>().0[at]));
        let places = s.round_block(x, factor, to);
        let mut sum = 0;
        for (part, places) in places.iter().enumerate() {
            let [first, last] = places.map(|[a, b]| a + b);
            sum = COARSE * sum + i32::from(first) + i32::from(last);
            self.group_sums[part][2 * lane] = first;
            self.group_sums[part][2 * lane + 1] = last;
            self.group_starts[lane][part] = places.map(|p| p.map(|sum| -8 * sum));
            self.starts[lane][part] = [0, 1].map(|i| -8 * (places[0][i] + places[1][i]));
        }
        self.sums[lane] = sum;
        self.scales[lane] = scale;
        self.scaled_sums[lane] = scale * sum as f32;
    }
}

/// Quantizes one row.
struct Fill<'a> {
    x: &'a [f32],
    steps: &'a mut [QuantizedStep],
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (step, x) in self.steps.iter_mut().zip(self.x.chunks(STEP)) {
            let (blocks, rest) = x.as_chunks::<BLOCK>();
            for (block, x) in blocks.iter().enumerate() {
                step.fill_block(s, block, x);
            }
            if blocks.len() < BLOCKS {
                let mut padded = [0.0; BLOCK];
                for (to, from) in padded.iter_mut().zip(rest) {
                    *to = *from;
                }
                step.fill_block(s, blocks.len(), &padded);
                for block in blocks.len() + 1..BLOCKS {
                    step.fill_block(s, block, &[0.0; BLOCK]);
                }
            }
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
        bytes_for::<QuantizedStep>(rows.saturating_mul(k.div_ceil(STEP)))
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
        let per_row = k.div_ceil(STEP);
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

    /// The quantized steps of row `row`.
    #[inline(always)]
    pub(crate) fn row_steps(&self, row: usize) -> &'a [QuantizedStep] {
        let per_row = self.k.div_ceil(STEP);
        &self.steps[row * per_row..(row + 1) * per_row]
    }

    /// The elements of row `row`.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [f32] {
        &self.x[row * self.k..(row + 1) * self.k]
    }
}
