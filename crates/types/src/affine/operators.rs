//! Affine codes as operators keep them: the constants of DequantizeLinear, and of ONNX Runtime's MatMulNBits.

use std::sync::Arc;

use heirloom_mem::{Bytes, BytesMut, DType, Ledger, Shape, Storage, Tensor, element_count};

use super::parameters::Scales;
use super::{Affine, AffineError, Declared, is_storage};
use crate::{EncodedType, EncodedValue, Layout, TensorType, TypeError, bits};

/// Why constants are no affine value. They stay what they are: inputs of their operator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAffine {
    /// Codes of another type.
    #[error("codes of {actual} are none of the affine layout")]
    Storage {
        /// The codes' type.
        actual: DType,
    },
    /// A constant that does not lie dense in memory.
    #[error("`{operand}` has gaps between its elements")]
    Gaps {
        /// The operator's name for it.
        operand: &'static str,
    },
    /// A constant of another size than the operator's attributes say.
    #[error("`{operand}` holds {actual} {unit}, where the attributes need {expected}")]
    Size {
        /// The operator's name for it.
        operand: &'static str,
        /// What is counted.
        unit: &'static str,
        /// What the attributes need.
        expected: usize,
        /// What there is.
        actual: usize,
    },
    /// An attribute with a value that the operator does not have.
    #[error("`{attribute}` is {value}")]
    Attribute {
        /// The attribute.
        attribute: &'static str,
        /// Its value.
        value: i64,
    },
    /// Rows that end within a block: their codes have gaps, which affine ones have not.
    #[error("rows of {columns} codes end within a block of {block_size}, and are filled up")]
    PartialBlocks {
        /// Codes of a row.
        columns: usize,
        /// Codes of a block.
        block_size: usize,
    },
    /// A zero point that is no code.
    #[error("zero point {index} is {value}, which is no code")]
    ZeroPoint {
        /// Its place.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// Zero points of a type that the operator does not have.
    #[error("zero points are {actual}")]
    ZeroPointType {
        /// Their type.
        actual: DType,
    },
    /// Parameters that do not fit the codes.
    #[error(transparent)]
    Affine(#[from] AffineError),
    /// Codes that do not fit the logical type.
    #[error(transparent)]
    Codes(#[from] TypeError),
}

fn dense(tensor: &Tensor, operand: &'static str) -> Result<Bytes, NotAffine> {
    match tensor.storage() {
        Storage::Dense(bytes) => Ok(bytes.clone()),
        _ => Err(NotAffine::Gaps { operand }),
    }
}

fn value(name: &str, affine: Affine, logical: TensorType, codes: Bytes) -> Result<EncodedValue, NotAffine> {
    affine.check(&logical)?;
    let layout = Layout::Affine(Arc::new(affine));
    Ok(EncodedType { name: name.into(), layout, logical: Some(logical) }.with_payload(codes)?)
}

/// A DequantizeLinear node whose inputs are constants.
#[derive(Clone, Copy, Debug)]
pub struct DequantizeLinear<'a> {
    /// `x`.
    pub codes: &'a Tensor,
    /// `x_scale`.
    pub scale: &'a Tensor,
    /// `x_zero_point`.
    pub zero_point: Option<&'a Tensor>,
    /// `axis`; 1 where the node does not say.
    pub axis: i64,
    /// `block_size`; 0 where the node does not say.
    pub block_size: i64,
    /// The element type of the output: `output_dtype`, else the scale's.
    pub output: DType,
}

impl DequantizeLinear<'_> {
    /// The node's output as an affine value over the same codes: nothing is copied. It decodes to what the node
    /// computes.
    ///
    /// # Errors
    /// Where the affine layout does not have the codes' type, or codes, parameters and attributes do not fit.
    pub fn to_affine(&self, name: &str) -> Result<EncodedValue, NotAffine> {
        let storage = self.codes.dtype();
        if !is_storage(storage) {
            return Err(NotAffine::Storage { actual: storage });
        }
        let codes = dense(self.codes, "x")?;
        let block_size = u64::try_from(self.block_size)
            .map_err(|_| NotAffine::Attribute { attribute: "block_size", value: self.block_size })?;
        let logical = TensorType { dtype: self.output, shape: Shape::from_slice(self.codes.shape()) };
        // One scale is one for the tensor, also where it is written as a vector.
        let per_tensor = block_size == 0 && self.scale.len() == 1;
        let parameter = |tensor: &Tensor| {
            if per_tensor { tensor.reshape(&[]).unwrap_or_else(|_| tensor.clone()) } else { tensor.clone() }
        };
        let affine = Affine {
            storage,
            scale: parameter(self.scale),
            zero_point: self.zero_point.map(parameter),
            axis: None,
            block_size: None,
        };
        let axis = (!per_tensor).then_some(self.axis);
        let block_size = (block_size != 0).then_some(block_size);
        let affine = Declared { affine, axis, block_size }.resolve(&logical)?;
        value(name, affine, logical, codes)
    }
}

/// The constants of a `com.microsoft` MatMulNBits node without `g_idx`.
#[derive(Clone, Copy, Debug)]
pub struct NBitWeights<'a> {
    /// `N`: rows.
    pub rows: usize,
    /// `K`: codes of a row.
    pub columns: usize,
    /// `bits`: 2, 4 or 8.
    pub bits: u32,
    /// `block_size`: codes that share a scale.
    pub block_size: usize,
    /// `B`: the codes, row by row.
    pub codes: &'a Tensor,
    /// `scales`: one for each block, row by row.
    pub scales: &'a Tensor,
    /// `zero_points`: packed as codes, each row in whole bytes, or numbers of the scales' type. Where there are none,
    /// each is half of the codes' range.
    pub zero_points: Option<&'a Tensor>,
    /// The element type that the weights are decoded to: that of the other factor.
    pub output: DType,
}

impl NBitWeights<'_> {
    /// The weights [`rows`, `columns`] as an affine value over the same codes, which are not copied. Zero points are
    /// packed anew where rows of them end within a byte.
    ///
    /// # Errors
    /// Where rows end within a block, a zero point is no code, or constants and attributes do not fit.
    pub fn to_affine(&self, name: &str) -> Result<EncodedValue, NotAffine> {
        let &NBitWeights { rows, columns, block_size, .. } = self;
        let storage = match self.bits {
            2 => DType::Uint2,
            4 => DType::Uint4,
            8 => DType::Uint8,
            other => return Err(NotAffine::Attribute { attribute: "bits", value: other.into() }),
        };
        if block_size == 0 {
            return Err(NotAffine::Attribute { attribute: "block_size", value: 0 });
        }
        if !columns.is_multiple_of(block_size) {
            return Err(NotAffine::PartialBlocks { columns, block_size });
        }
        let blocks = columns / block_size;
        let count = element_count(&[rows, blocks]).ok_or(TypeError::SizeOverflow { path: String::new() })?;
        if self.scales.len() != count {
            return Err(size("scales", "numbers", count, self.scales.len()));
        }
        let scales = dense(self.scales, "scales")?;
        let shape = [rows, blocks];
        let tensor = |dtype, bytes| {
            Tensor::new(dtype, &shape, bytes).map_err(|_| TypeError::SizeOverflow { path: String::new() })
        };
        let zero_point = tensor(storage, self.zero_point_codes(count, blocks)?)?;
        let affine = Affine {
            storage,
            scale: tensor(self.scales.dtype(), scales)?,
            zero_point: Some(zero_point),
            axis: Some(1),
            block_size: Some(block_size),
        };
        let logical = TensorType { dtype: self.output, shape: Shape::from_slice(&[rows, columns]) };
        value(name, affine, logical, dense(self.codes, "B")?)
    }

    /// The zero points of `count` blocks, `blocks` of them in a row, packed as tightly as codes.
    fn zero_point_codes(&self, count: usize, blocks: usize) -> Result<Bytes, NotAffine> {
        let bits = self.bits as usize;
        let packed = |codes: &dyn Fn(usize) -> Result<u8, NotAffine>| {
            let codes = (0..count).map(codes).collect::<Result<Vec<u8>, _>>()?;
            let mut out = BytesMut::zeroed((count * bits).div_ceil(8), &Ledger::default());
            bits::pack(&codes, self.bits, out.as_mut_slice());
            Ok(out.freeze())
        };
        let Some(tensor) = self.zero_points else { return packed(&|_| Ok(1 << (bits - 1))) };
        let bytes = dense(tensor, "zero_points")?;
        if tensor.dtype() == DType::Uint8 {
            let row = (blocks * bits).div_ceil(8);
            if bytes.len() != self.rows * row {
                return Err(size("zero_points", "bytes", self.rows * row, bytes.len()));
            }
            if (blocks * bits).is_multiple_of(8) {
                return Ok(bytes);
            }
            return packed(&|at| {
                let mut code = [0];
                bits::unpack(&bytes[at / blocks * row..], self.bits, at % blocks, &mut code);
                Ok(code[0])
            });
        }
        if tensor.len() != count {
            return Err(size("zero_points", "numbers", count, tensor.len()));
        }
        if !matches!(tensor.dtype(), DType::Float | DType::Float16 | DType::BFloat16) {
            return Err(NotAffine::ZeroPointType { actual: tensor.dtype() });
        }
        let (numbers, highest) = (Scales::new(tensor), ((1u32 << bits) - 1) as f32);
        packed(&|index| {
            let mut value = [0.0];
            numbers.read(index, &mut value);
            let [value] = value;
            let is_code = (0.0..=highest).contains(&value) && value.fract() == 0.0;
            if is_code { Ok(value as u8) } else { Err(NotAffine::ZeroPoint { index, value }) }
        })
    }
}

fn size(operand: &'static str, unit: &'static str, expected: usize, actual: usize) -> NotAffine {
    NotAffine::Size { operand, unit, expected, actual }
}
