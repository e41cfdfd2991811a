//! The weights of ONNX Runtime's `com.microsoft.MatMulNBits`: rows of unsigned codes in blocks along K, a scale and
//! perhaps a zero point for each block; `(code - zero_point) * scale` as [N, K], in f32.
//!
//! The value is one record: all codes, then all scales, then the zero points, each as the operator's input of that name
//! holds it. The last block of a row is filled up; integer zero points are packed as tightly as codes, a row at a time.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::DType::{self, BFloat16, Float, Float16};
use heirloom_mem::Tensor;
use heirloom_types::{Codec, CodecError, StructBuilder, StructType, bits};

use super::{Family, Shaped, confirm, identity};
use crate::body::{Attr, Body, Val};
use crate::error::FormatError;
use crate::fit::{inverse, nearest, range, symmetric};
use crate::shape_of::{constant, leaves, packed};
use crate::small_parameters::{get, put};

/// The zero points of a [`MatMulNBits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroPoints {
    /// None: each is half of the codes' range, 2^(bits - 1).
    Middle,
    /// Codes like those of the weights.
    Packed,
    /// Numbers of the scales' type.
    Numbers,
}

/// The format for weights of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulNBits {
    rows: usize,
    columns: usize,
    bits: u32,
    block: usize,
    zero_points: ZeroPoints,
    scale: DType,
}

pub(super) static FAMILY: Family = Family {
    name: "mat_mul_n_bits",
    recognize,
    examples: || {
        use ZeroPoints::{Middle, Numbers, Packed};
        let members = [
            (3, 64, 4, 32, Middle, Float),
            (5, 80, 4, 32, Packed, Float),
            (2, 33, 2, 16, Packed, Float16),
            (4, 128, 2, 32, Middle, BFloat16),
            (3, 96, 8, 32, Packed, Float16),
            (2, 70, 8, 64, Numbers, BFloat16),
            (3, 48, 4, 16, Numbers, Float),
        ];
        let example = |(rows, columns, bits, block, zero_points, scale)| {
            Arc::new(
                MatMulNBits::new(rows, columns, bits, block, zero_points, scale).expect("a possible shape"),
            ) as _
        };
        members.into_iter().map(example).collect()
    },
};

fn recognize(ty: &StructType) -> Option<Arc<dyn Codec>> {
    let (bits, codes) = packed(ty, &["codes", "code"])?;
    let (leaf, scales) = leaves(ty, &["scales"])?;
    let heirloom_types::Leaf::Scalar(scale) = leaf else { return None };
    let (&[rows, padded], &[_, blocks]) = (&codes[..], &scales[..]) else { return None };
    let columns = constant(ty, "columns")?.as_slice::<i64>().ok()?.first().copied()?;
    let zero_points = if leaves(ty, &["zero_points"]).is_some() {
        ZeroPoints::Numbers
    } else if packed(ty, &["zero_points", "codes", "code"]).is_some() {
        ZeroPoints::Packed
    } else {
        ZeroPoints::Middle
    };
    let columns = usize::try_from(columns).ok()?;
    let block = padded.checked_div(blocks)?;
    confirm(MatMulNBits::new(rows, columns, bits, block, zero_points, scale).ok()?, ty)
}

impl MatMulNBits {
    /// The format for weights [`rows` (N), `columns` (K)] of `bits` bits in blocks of `block`.
    ///
    /// # Errors
    /// When `bits` is not 2, 4 or 8, `block` no power of two from 16 to 2^18, a dimension not 1 to 2^24 - 1, or the
    /// type of scales not FLOAT, FLOAT16 or BFLOAT16.
    pub fn new(
        rows: usize,
        columns: usize,
        bits: u32,
        block: usize,
        zero_points: ZeroPoints,
        scale: DType,
    ) -> Result<MatMulNBits, FormatError> {
        let refuse = |parameter, value: &dyn std::fmt::Display, expected| {
            let value = value.to_string();
            Err(FormatError::Parameter { format: FAMILY.name, parameter, value, expected })
        };
        if ![2, 4, 8].contains(&bits) {
            return refuse("bits", &bits, "2, 4 or 8");
        }
        if !block.is_power_of_two() || !(1 << 4..=1 << 18).contains(&block) {
            return refuse("block_size", &block, "a power of two, 16 to 262,144");
        }
        for (name, extent) in [("N", rows), ("K", columns)] {
            if !(1..1 << 24).contains(&extent) {
                return refuse(name, &extent, "1 to 16,777,215");
            }
        }
        if ![Float, Float16, BFloat16].contains(&scale) {
            return refuse("scales", &scale, "FLOAT, FLOAT16 or BFLOAT16");
        }
        Ok(MatMulNBits { rows, columns, bits, block, zero_points, scale })
    }

    /// Blocks of a row.
    fn blocks(&self) -> usize {
        self.columns.div_ceil(self.block)
    }

    /// Bytes of the codes of a block.
    fn block_bytes(&self) -> usize {
        self.block * self.bits as usize / 8
    }

    /// Bits behind the last packed zero point of a row.
    fn padding(&self) -> u64 {
        (8 - self.blocks() as u64 * u64::from(self.bits) % 8) % 8
    }

    /// Bytes of the packed zero points of a row.
    fn zero_point_bytes(&self) -> usize {
        (self.blocks() * self.bits as usize).div_ceil(8)
    }

    /// Bytes of a scale.
    fn scale_bytes(&self) -> usize {
        if self.scale == Float { 4 } else { 2 }
    }

    /// Where in a record scales, zero points and its end lie.
    fn offsets(&self) -> (usize, usize, usize) {
        let blocks = self.rows * self.blocks();
        let scales = blocks * self.block_bytes();
        let zero_points = scales + blocks * self.scale_bytes();
        let end = zero_points
            + match self.zero_points {
                ZeroPoints::Middle => 0,
                ZeroPoints::Packed => self.rows * self.zero_point_bytes(),
                ZeroPoints::Numbers => blocks * self.scale_bytes(),
            };
        (scales, zero_points, end)
    }

    fn zero_point(&self, zero_points: &[u8], row: usize, block: usize) -> f32 {
        match self.zero_points {
            ZeroPoints::Middle => (1u32 << (self.bits - 1)) as f32,
            ZeroPoints::Numbers => get(self.scale, zero_points, row * self.blocks() + block),
            ZeroPoints::Packed => {
                let mut code = [0];
                bits::unpack(&zero_points[row * self.zero_point_bytes()..], self.bits, block, &mut code);
                f32::from(code[0])
            }
        }
    }

    fn decode_part(&self, record: &[u8], first: usize, out: &mut [f32]) -> Result<(), String> {
        let (scales, zero_points, _) = self.offsets();
        let mut codes = [0; 64];
        let (mut at, mut out) = (first, out);
        while !out.is_empty() {
            let (row, column) = (at / self.columns, at % self.columns);
            let (block, within) = (column / self.block, column % self.block);
            let count = (self.block - within).min(self.columns - column).min(out.len()).min(codes.len());
            let (now, later) = out.split_at_mut(count);
            let index = row * self.blocks() + block;
            let scale = get(self.scale, &record[scales..], index);
            let zero_point = self.zero_point(&record[zero_points..], row, block);
            let bytes = &record[index * self.block_bytes()..(index + 1) * self.block_bytes()];
            bits::unpack(bytes, self.bits, within, &mut codes[..count]);
            for (value, code) in now.iter_mut().zip(codes) {
                *value = (f32::from(code) - zero_point) * scale;
            }
            at += count;
            out = later;
        }
        Ok(())
    }

    fn encode_record(&self, values: &[f32], record: &mut [u8]) {
        record.fill(0);
        let (scales, zero_points, _) = self.offsets();
        let mut codes = vec![0; self.block];
        for (row, values) in values.chunks(self.columns).enumerate() {
            for (block, values) in values.chunks(self.block).enumerate() {
                let index = row * self.blocks() + block;
                let (scale, zero_point) = self.fit(values);
                let scale = put(self.scale, &mut record[scales..], index, scale);
                let zero_points = &mut record[zero_points..];
                let zero_point = match self.zero_points {
                    ZeroPoints::Middle => zero_point,
                    ZeroPoints::Numbers => put(self.scale, zero_points, index, zero_point),
                    ZeroPoints::Packed => {
                        let row = &mut zero_points[row * self.zero_point_bytes()..];
                        // The zero point is one of a row's, so it lies within its bytes.
                        let _ = bits::write(
                            row,
                            (block * self.bits as usize) as u64,
                            self.bits,
                            zero_point as u64,
                        );
                        zero_point
                    }
                };
                let inverse = inverse(scale);
                codes.fill(0);
                for (code, x) in codes.iter_mut().zip(values) {
                    *code = nearest(x * inverse + zero_point, 0, self.highest()) as u8;
                }
                let bytes = self.block_bytes();
                bits::pack(&codes, self.bits, &mut record[index * bytes..(index + 1) * bytes]);
            }
        }
    }

    fn highest(&self) -> i32 {
        (1 << self.bits) - 1
    }

    /// Scale and zero point for a block.
    fn fit(&self, values: &[f32]) -> (f32, f32) {
        let middle = 1 << (self.bits - 1);
        if self.zero_points == ZeroPoints::Middle {
            return (symmetric(values, -middle, middle - 1), middle as f32);
        }
        // The range includes 0, so that 0 stays 0 where zero points are integers.
        let (low, high) = range(values);
        let (low, high) = (low.min(0.0), high.max(0.0));
        let scale = (high - low) / self.highest() as f32;
        let zero_point = -low * inverse(scale);
        match self.zero_points {
            ZeroPoints::Packed => (scale, nearest(zero_point, 0, self.highest()) as f32),
            _ => (scale, zero_point),
        }
    }
}

impl Codec for MatMulNBits {
    fn elements(&self) -> usize {
        self.rows * self.columns
    }

    fn record_bytes(&self) -> usize {
        self.offsets().2
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        super::decode(self, records, out, &|record, first, out| self.decode_part(record, first, out))
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        super::encode(self, values, records, &|values, record| self.encode_record(values, record))
    }

    fn decode_range(&self, records: &[u8], first: usize, out: &mut [f32]) -> Result<(), CodecError> {
        let part = |record: &[u8], first, out: &mut [f32]| self.decode_part(record, first, out);
        super::decode_range(self, records, first, out, &part)
    }
}

impl Shaped for MatMulNBits {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn declare(&self, record: StructBuilder) -> StructBuilder {
        let (rows, blocks) = (self.rows as u64, self.blocks());
        let codes = [("code", self.bits)];
        let row = StructType::bit_packing("", &codes, (blocks * self.block) as u64);
        let row = row.build().expect("codes of 2, 4 or 8 bits");
        let record =
            record.nested_array("codes", &row, rows).tensor("scales", self.scale, &[self.rows, blocks]);
        let record = match self.zero_points {
            ZeroPoints::Middle => record,
            ZeroPoints::Numbers => record.tensor("zero_points", self.scale, &[self.rows, blocks]),
            ZeroPoints::Packed => {
                let row = StructType::structure("").bits("codes", &codes, blocks as u64);
                let row = match self.padding() {
                    0 => row,
                    padding => row.bits("padding", &[("bit", 1)], padding),
                };
                record.nested_array("zero_points", &row.build().expect("codes of 2, 4 or 8 bits"), rows)
            }
        };
        record.constant("columns", Tensor::scalar(self.columns as i64))
    }

    fn decoder(&self, body: &mut Body) -> Val {
        let (rows, columns) = (self.rows as i64, self.columns as i64);
        let (blocks, block) = (self.blocks() as i64, self.block as i64);
        let codes = body.float_field(&["codes", "code"]);
        let codes = body.reshape(&codes, &[0, rows, blocks, block]);
        let zero_points = match self.zero_points {
            ZeroPoints::Middle => body.float((1u32 << (self.bits - 1)) as f32),
            ZeroPoints::Numbers => body.float_field(&["zero_points"]),
            ZeroPoints::Packed => body.float_field(&["zero_points", "codes", "code"]),
        };
        let zero_points = match self.zero_points {
            ZeroPoints::Middle => zero_points,
            _ => body.reshape(&zero_points, &[0, rows, blocks, 1]),
        };
        let scales = body.float_field(&["scales"]);
        let scales = body.reshape(&scales, &[0, rows, blocks, 1]);
        let centred = body.sub(&codes, &zero_points);
        let values = body.mul(&centred, &scales);
        let values = body.reshape(&values, &[0, rows, blocks * block]);
        let [start, end, axis] = [0, columns, 2].map(|n| body.ints(&[n]));
        let values = body.op("Slice", &[&values, &start, &end, &axis], &[] as &[(&str, Attr<'_>)]);
        body.reshape(&values, &[0, rows * columns])
    }

    fn type_id(&self) -> Option<NonZeroU64> {
        let zero_points = self.zero_points as u64;
        let scale = match self.scale {
            Float => 0,
            Float16 => 1,
            _ => 2,
        };
        let bits = u64::from(self.bits.trailing_zeros()) - 1;
        let block = u64::from(self.block.trailing_zeros()) - 4;
        let shape = (self.rows as u64) << 24 | self.columns as u64;
        identity(3, shape | block << 48 | bits << 52 | zero_points << 54 | scale << 56)
    }
}
