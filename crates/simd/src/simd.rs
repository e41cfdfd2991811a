//! The register operations that products are written with, once for every level.

use crate::Level;

/// Weights of one block: the unit with one activation scale.
pub const BLOCK: usize = 32;

/// Blocks of one step.
pub const BLOCKS: usize = 8;

/// What a coarse activation code counts in units of a fine one: an activation is `scale * (COARSE * coarse + fine)`.
pub const COARSE: i32 = 64;

/// The codes of the activations of a half: coarse, then fine ones, each in the order of two registers of codes.
pub type HalfActivations = [[[u8; 64]; 2]; 2];

/// Weights of one step.
pub const STEP: usize = BLOCK * BLOCKS;

/// The lane of an eight-lane register that belongs to each block of a step.
pub const LANE_OF_BLOCK: [usize; BLOCKS] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Work that is compiled once for each level.
pub trait Kernel {
    /// What it gives.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, as is all that they call in their hot loops: only
    /// what is inlined into [`Simd::vectorize`] is compiled for the level.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// A level's registers and instructions. A value of an implementing type proves that the processor has them.
///
/// Vocabulary: a *step* is 256 consecutive weights of a row, eight *blocks* of 32. Codes are handled as two halves
/// of four blocks; a half is two registers of 64 bytes, the first with the first 16 weights of each of its blocks,
/// the second with the last 16; 16 bytes of such a register are a *quarter*. What belongs to the blocks of a step
/// stands in registers of eight lanes, in the order of [`LANE_OF_BLOCK`]. A *panel* is 16 rows side by side, four
/// consecutive weights of each: what belongs to its rows stands in registers of 16 lanes.
///
/// All integer results are exact, and all levels round alike, so every level gives the same bits; but
/// [`Portable`](crate::Portable) rounds a fused product twice.
pub trait Simd: Copy + Send + Sync + 'static {
    /// The level.
    const LEVEL: Level;
    /// Whether [`Simd::Sum`] is made of 16-bit integers: see [`Simd::add_products`].
    const NARROW: bool;
    /// What must be taken off each signed code, in units of the code, after [`Simd::dot_signed`].
    const SIGNED_OFFSET: i32;
    /// Activation rows of one tile of the matrix product.
    const TILE: usize;
    /// As [`Simd::TILE`], in `f32`.
    const FLOAT_TILE: usize;

    /// 64 bytes.
    type Codes: Copy;
    /// Four times 32 bits, one for each quarter.
    type Bits: Copy;
    /// One signed scale for each quarter.
    type QuarterScales: Copy;
    /// Sums of a half, not yet complete.
    type Half: Copy;
    /// Eight `i32`.
    type I32x8: Copy;
    /// Eight `f32`.
    type F32x8: Copy;
    /// Sums of a panel's 16 rows, not yet complete.
    type Sum: Copy;
    /// Sixteen `i32`.
    type I32x16: Copy;
    /// Sixteen `f32`.
    type F32x16: Copy;

    /// Rows of weights, 1 or 2, that one row of activations is best multiplied with side by side.
    const ROWS: usize;
    /// Rows of fewer bytes lie so close that reading them side by side is one stream, which the processor follows by
    /// itself: of what comes behind them only [`Simd::SHORT_NEAR`] is brought near.
    const SHORT_ROW: usize;
    /// As [`Simd::NEAR`], for rows below [`Simd::SHORT_ROW`].
    const SHORT_NEAR: usize;
    /// Bytes ahead of the weights in use that are worth bringing into the first-level cache; 0 for none.
    const NEAR: usize;
    /// And into the second-level cache.
    const FAR: usize;

    /// Runs `kernel`, compiled for this level.
    fn vectorize<K: Kernel>(self, kernel: K) -> K::Output;

    // Codes: what unpacking is written with.

    /// 64 consecutive bytes.
    fn load(self, bytes: &[u8; 64]) -> Self::Codes;
    /// Four quarters from anywhere.
    fn load_quarters(self, quarters: [&[u8; 16]; 4]) -> Self::Codes;
    /// One byte, 64 times.
    fn splat(self, byte: u8) -> Self::Codes;
    /// Bitwise and.
    fn and(self, a: Self::Codes, b: Self::Codes) -> Self::Codes;
    /// Bitwise or.
    fn or(self, a: Self::Codes, b: Self::Codes) -> Self::Codes;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::Codes, b: Self::Codes) -> Self::Codes;
    /// Shifts the quarters' 64-bit lanes right by A, B, C and D bits: bits of one byte enter the next.
    fn shr_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: Self::Codes,
    ) -> Self::Codes;
    /// Shifts the quarters' 64-bit lanes left by A, B, C and D bits: bits of one byte enter the next.
    fn shl_quarters<const A: i64, const B: i64, const C: i64, const D: i64>(
        self,
        codes: Self::Codes,
    ) -> Self::Codes;
    /// 32 bits for each quarter, little-endian.
    fn load_bits(self, bits: [&[u8; 4]; 4]) -> Self::Bits;
    /// `codes`, with bit 4 set in byte p of each quarter whose bit p (`UPPER`: 16 + p) is set. It must be clear before.
    fn set_fifth_bits<const UPPER: bool>(self, codes: Self::Codes, bits: Self::Bits) -> Self::Codes;
    /// The low nibble (`UPPER`: the high one) of each byte, with bit 4 as [`Simd::set_fifth_bits`] sets it.
    #[inline(always)]
    fn five_bits<const UPPER: bool>(self, packed: Self::Codes, bits: Self::Bits) -> Self::Codes {
        let nibbles = if UPPER { self.shr_quarters::<4, 4, 4, 4>(packed) } else { packed };
        self.set_fifth_bits::<UPPER>(self.and(nibbles, self.splat(15)), bits)
    }
    /// The low nibble of each byte of `low`, with bits 2q and 2q + 1 of each byte of `high` in quarter q as bits 4 and 5.
    #[inline(always)]
    fn six_bits(self, low: Self::Codes, high: Self::Codes) -> Self::Codes {
        let high = self.shr_quarters::<0, 0, 0, 2>(self.shl_quarters::<4, 2, 0, 0>(high));
        self.or(self.and(low, self.splat(0x0f)), self.and(high, self.splat(0x30)))
    }
    /// Writes the 64 bytes.
    fn store(self, codes: Self::Codes, to: &mut [u8; 64]);

    // Records of one block: four of them, or eight, of RECORD bytes, one behind the other. AT and RECORD are even.

    /// The 16 bytes at byte AT of each of four records of at most 32 bytes, as quarters.
    #[inline(always)]
    fn record_quarters<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> Self::Codes {
        self.load_quarters(each_record(records, RECORD, AT))
    }
    /// The 32 bits at byte AT, the last four before 16 bytes of codes, of each of four records of at most 32 bytes.
    #[inline(always)]
    fn record_bits<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> Self::Bits {
        self.load_bits(each_record(records, RECORD, AT))
    }
    /// The FLOAT16 at byte AT, which is below 8, of each of eight records, in the lanes of their blocks.
    #[inline(always)]
    fn record_f16<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> Self::F32x8 {
        let [a, b, c, d] = each_record(records, RECORD, AT);
        let [e, f, g, h] = each_record(records, RECORD, AT + 4 * RECORD);
        self.block_f16([a, b, c, d, e, f, g, h].map(|bytes| u16::from_le_bytes(*bytes)))
    }
    /// As [`Simd::record_f16`], of four records; 0 in the other lanes.
    #[inline(always)]
    fn record_f16_half<const RECORD: usize, const AT: usize>(self, records: &[u8]) -> Self::F32x8 {
        self.block_f16_half(each_record(records, RECORD, AT).map(|bytes| u16::from_le_bytes(*bytes)))
    }

    // Exact sums of codes times activations, one for each block. Coarse codes of activations lie within -127..=127, fine
    // ones within -32..=32.

    /// A half of zeros.
    fn zero_half(self) -> Self::Half;
    /// The sums of unsigned codes of at most `max` times `x`; `max` is a constant of at most 63.
    fn dot(self, max: u8, codes: [Self::Codes; 2], x: &HalfActivations) -> Self::Half;
    /// The sums of signed codes times `x`, plus [`Simd::SIGNED_OFFSET`] times the sum of `x`.
    fn dot_signed(self, codes: [Self::Codes; 2], x: &HalfActivations) -> Self::Half;
    /// The sums of unsigned codes of at most 63 times `x` times the scale of their quarter.
    fn dot_scaled(
        self,
        codes: [Self::Codes; 2],
        x: &HalfActivations,
        scales: [Self::QuarterScales; 2],
    ) -> Self::Half;
    /// The sums for each block of a step's unsigned codes of at most 63 times `x` times the scale of their group, of which
    /// `scales` has the 16 signed ones.
    #[inline(always)]
    fn dot_groups(
        self,
        codes: [[Self::Codes; 2]; 2],
        x: &[HalfActivations; 2],
        scales: &[u8; 16],
    ) -> Self::I32x8 {
        let first = self.dot_scaled(codes[0], &x[0], self.quarter_scales(scales, 0));
        let last = self.dot_scaled(codes[1], &x[1], self.quarter_scales(scales, 1));
        self.join([first, last])
    }
    /// The scales of the quarters of half `half`, from the 16 signed scales of a step's groups of 16 weights.
    fn quarter_scales(self, scales: &[u8; 16], half: usize) -> [Self::QuarterScales; 2];
    /// The sum for each block from the two halves of a step.
    fn join(self, halves: [Self::Half; 2]) -> Self::I32x8;
    /// For each block, the sum over its two groups of 16 weights of scale times `sums`; `scales` as in
    /// [`Simd::quarter_scales`], `sums` two for each lane, of coarse and of fine activations.
    fn scale_sums(self, scales: &[u8; 16], sums: &[[i16; 16]; 2]) -> Self::I32x8;

    // Eight lanes.

    /// Eight consecutive integers.
    fn i32x8(self, from: &[i32; 8]) -> Self::I32x8;
    /// `a - b * factor`, wrapping; fast where `factor` is a constant power of two.
    fn sub_scaled(self, a: Self::I32x8, b: Self::I32x8, factor: i32) -> Self::I32x8;
    /// To the nearest `f32`.
    fn to_f32x8(self, a: Self::I32x8) -> Self::F32x8;
    /// One value, eight times.
    fn splat_f32x8(self, x: f32) -> Self::F32x8;
    /// Eight consecutive values.
    fn load_f32x8(self, from: &[f32; 8]) -> Self::F32x8;
    /// Eight consecutive FLOAT values, little-endian.
    fn load_f32x8_bytes(self, from: &[u8; 32]) -> Self::F32x8;
    /// Writes the eight lanes.
    fn store_f32x8(self, a: Self::F32x8, to: &mut [f32; 8]);
    /// Eight consecutive FLOAT16 values, little-endian.
    fn load_f16x8(self, from: &[u8; 16]) -> Self::F32x8;
    /// Eight consecutive BFLOAT16 values, little-endian.
    fn load_bf16x8(self, from: &[u8; 16]) -> Self::F32x8;
    /// The FLOAT16 values of a step's blocks, in the blocks' order, to their lanes.
    fn block_f16(self, from: [u16; 8]) -> Self::F32x8;
    /// Four blocks as in [`Simd::block_f16`]; 0 for the others.
    fn block_f16_half(self, from: [u16; 4]) -> Self::F32x8;
    /// One FLOAT16 value, eight times.
    fn splat_f16(self, x: u16) -> Self::F32x8;
    /// The unsigned bytes of a step's blocks, in the blocks' order (the lowest byte is block 0), to their lanes.
    fn block_u8(self, from: u64) -> Self::F32x8;
    /// `a + b`
    fn add_f32x8(self, a: Self::F32x8, b: Self::F32x8) -> Self::F32x8;
    /// `a * b`
    fn mul_f32x8(self, a: Self::F32x8, b: Self::F32x8) -> Self::F32x8;
    /// `a * b + c`
    fn fma_f32x8(self, a: Self::F32x8, b: Self::F32x8, c: Self::F32x8) -> Self::F32x8;
    /// The sums of four registers, each `((l0+l1)+(l2+l3)) + ((l4+l5)+(l6+l7))`.
    fn sum4(self, a: [Self::F32x8; 4]) -> [f32; 4];

    // Quantizing activations.

    /// The largest magnitude; infinite or NaN where a value is.
    fn largest(self, x: &[f32; BLOCK]) -> f32;
    /// Rounds `x * factor`, which lies within -8128.4..=8128.4, to the nearest integers (ties to even), and writes their
    /// coarse and fine parts, each the first 16 and the last 16. Gives, for coarse and fine, first and last, the sum of
    /// those at places 0 and 1 of every four, and of the others.
    fn round_block(self, x: &[f32; BLOCK], factor: f32, to: [[&mut [u8; 16]; 2]; 2]) -> [[[i16; 2]; 2]; 2];

    // Panels.

    /// Transposes 16 rows of 64 bytes into 16 groups of 64: group g has bytes 4g..4g+4 of all rows.
    fn transpose(self, rows: [Self::Codes; 16], to: &mut [[u8; 64]; 16]);
    /// The start of sums of codes of which `8 * eights` is to be taken off: minus that times the sum of the activations.
    /// `x` has -8 times the sum of those at places 0 and 1 of every four, and of those at 2 and 3.
    fn start(self, x: &[i16; 2], eights: i32) -> Self::Sum;
    /// Adds the products of 16 unsigned codes of each row with as many activations of each of `M` rows.
    ///
    /// Where [`Simd::NARROW`] the sum is kept in two 16-bit parts, at places 0 and 1 of every four and at 2 and 3, which
    /// wrap: the parts must fit at the end, not before. Two neighbouring products must fit always: codes are at most
    /// 63.
    fn add_products<const M: usize>(
        self,
        sums: &mut [Self::Sum; M],
        codes: &[[u8; 64]; 4],
        x: [&[u8; 16]; M],
    );
    /// The sum for each row.
    fn widen(self, sum: Self::Sum) -> Self::I32x16;
    /// The sum for each row times its scale, each scale made by [`Simd::row_scale`].
    fn widen_scaled(self, sum: Self::Sum, scales: &[i32; 16]) -> Self::I32x16;
    /// A row's scale in the form that [`Simd::widen_scaled`] takes.
    fn row_scale(self, scale: i16) -> i32;
    /// Zeros.
    fn zero_i32x16(self) -> Self::I32x16;
    /// Sixteen consecutive integers.
    fn load_i32x16(self, from: &[i32; 16]) -> Self::I32x16;
    /// `a + b`, wrapping.
    fn add_i32x16(self, a: Self::I32x16, b: Self::I32x16) -> Self::I32x16;
    /// `a - b`, wrapping.
    fn sub_i32x16(self, a: Self::I32x16, b: Self::I32x16) -> Self::I32x16;
    /// `a * b`, wrapping.
    fn mul_i32x16(self, a: Self::I32x16, b: Self::I32x16) -> Self::I32x16;
    /// One integer, 16 times.
    fn splat_i32x16(self, x: i32) -> Self::I32x16;
    /// To the nearest `f32`.
    fn to_f32x16(self, a: Self::I32x16) -> Self::F32x16;
    /// One value, 16 times.
    fn splat_f32x16(self, x: f32) -> Self::F32x16;
    /// Sixteen consecutive values.
    fn load_f32x16(self, from: &[f32; 16]) -> Self::F32x16;
    /// Writes the 16 lanes.
    fn store_f32x16(self, a: Self::F32x16, to: &mut [f32; 16]);
    /// `a + b`
    fn add_f32x16(self, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// `a * b`
    fn mul_f32x16(self, a: Self::F32x16, b: Self::F32x16) -> Self::F32x16;
    /// `a * b + c`
    fn fma_f32x16(self, a: Self::F32x16, b: Self::F32x16, c: Self::F32x16) -> Self::F32x16;
}

/// `N` bytes at `at` of each of four records of `record` bytes.
#[inline(always)]
fn each_record<const N: usize>(records: &[u8], record: usize, at: usize) -> [&[u8; N]; 4] {
    let of = |index: usize| records[index * record + at..].first_chunk().expect("whole records");
    [of(0), of(1), of(2), of(3)]
}

/// Asks for the cache line of `bytes[at]`, which may lie behind the slice, to be brought near; `FAR`: into the
/// second-level cache.
#[inline(always)]
pub fn prefetch<const FAR: bool>(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    crate::x86::prefetch::<FAR>(bytes.as_ptr().wrapping_add(at));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Asks for the cache line at this address, wherever it is, to be brought into the second-level cache.
#[inline(always)]
pub fn prefetch_address(address: usize) {
    #[cfg(target_arch = "x86_64")]
    crate::x86::prefetch::<true>(std::ptr::without_provenance(address));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
