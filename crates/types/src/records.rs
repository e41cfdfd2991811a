//! Reading records: any field, at any bit, with every read checked.

use heirloom_mem::{Bytes, DType};
use smallvec::SmallVec;

use crate::floats::{SmallFloat, e8m0_to_f32};
use crate::slot::{SlotDim, parse_path};
use crate::struct_type::Constant;
use crate::{Leaf, Located, RecordError, Slot, Step, StructLayout, StructType, bits};

/// The records of a payload. Their number follows from the payload's length.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    declaration: &'a StructType,
    payload: &'a [u8],
    record_bytes: usize,
}

impl<'a> Records<'a> {
    /// The records in `payload`.
    ///
    /// # Errors
    /// When the payload ends within a record.
    pub fn new(layout: &'a StructLayout, payload: &'a [u8]) -> Result<Records<'a>, RecordError> {
        if !payload.len().is_multiple_of(layout.record_bytes) {
            return Err(RecordError::Partial { payload: payload.len(), record: layout.record_bytes });
        }
        Ok(Records { declaration: &layout.declaration, payload, record_bytes: layout.record_bytes })
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.payload.len() / self.record_bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Bytes of one record.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// All bytes.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The type of the records.
    pub fn declaration(&self) -> &'a StructType {
        self.declaration
    }

    /// Record `index`; `None` behind the last.
    pub fn get(&self, index: usize) -> Option<Record<'a>> {
        let start = index.checked_mul(self.record_bytes)?;
        let bytes = self.payload.get(start..start.checked_add(self.record_bytes)?)?;
        Some(Record { declaration: self.declaration, bytes })
    }

    /// All records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'a>> + use<'a> {
        let declaration = self.declaration;
        self.payload.chunks_exact(self.record_bytes).map(move |bytes| Record { declaration, bytes })
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    declaration: &'a StructType,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The field at a textual path such as `quantized.codes[3].index`; a constant field gives the type's constant.
    ///
    /// # Errors
    /// When the path does not lead to leaves of the record or a constant of numbers.
    pub fn field(&self, path: &str) -> Result<FieldView<'a>, RecordError> {
        self.at(&parse_path(path)?)
    }

    /// The field that the steps lead to.
    ///
    /// # Errors
    /// As [`field`](Record::field).
    pub fn at(&self, steps: &[Step<'_>]) -> Result<FieldView<'a>, RecordError> {
        // An index behind a constant's name goes to the constant's elements.
        let indices = steps.iter().rev().take_while(|step| matches!(step, Step::Index(_))).count();
        let (names, behind) = steps.split_at(steps.len() - indices);
        if let Ok(Located::Constant(constant)) = self.declaration.locate(names) {
            let mut view = FieldView::of_constant(constant)?;
            for step in behind {
                if let Step::Index(index) = step {
                    view = view.index(*index)?;
                }
            }
            return Ok(view);
        }
        match self.declaration.locate(steps)? {
            Located::Slot(slot) => Ok(self.read(&slot)),
            Located::Constant(constant) => FieldView::of_constant(constant),
        }
    }

    /// The leaves of a slot that was located in the record's declaration before.
    pub fn read(&self, slot: &Slot) -> FieldView<'a> {
        FieldView { bytes: self.bytes, leaf: slot.leaf, bit_offset: slot.bit_offset, dims: slot.dims.clone() }
    }
}

/// One element, or a block of equal ones, of a record or a constant.
#[derive(Clone, Debug)]
pub struct FieldView<'a> {
    bytes: &'a [u8],
    leaf: Leaf,
    bit_offset: u64,
    dims: SmallVec<[SlotDim; 4]>,
}

impl<'a> FieldView<'a> {
    fn of_constant(constant: &'a Constant) -> Result<FieldView<'a>, RecordError> {
        let tensor = constant.as_tensor().ok_or(RecordError::Strings)?;
        let leaf = Leaf::Scalar(tensor.dtype());
        let mut dims: SmallVec<[SlotDim; 4]> = SmallVec::new();
        let mut stride = u64::from(leaf.bit_width());
        for &count in tensor.shape().iter().rev() {
            dims.insert(0, SlotDim { count: count as u64, stride });
            stride = stride.saturating_mul(count as u64);
        }
        Ok(FieldView { bytes: tensor.dense_bytes().unwrap_or(&[]), leaf, bit_offset: 0, dims })
    }

    /// What each element is.
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Elements along each dimension; empty for a single element.
    pub fn shape(&self) -> SmallVec<[u64; 4]> {
        self.dims.iter().map(|dim| dim.count).collect()
    }

    /// Where the first element lies, in bits from the record's start.
    pub fn bit_offset(&self) -> u64 {
        self.bit_offset
    }

    /// Element or block `index` of the first dimension.
    ///
    /// # Errors
    /// When there is no dimension left or the index lies outside.
    pub fn index(&self, index: u64) -> Result<FieldView<'a>, RecordError> {
        let path = String::new;
        let Some((first, rest)) = self.dims.split_first() else {
            return Err(RecordError::NoDimension { path: path() });
        };
        if index >= first.count {
            return Err(RecordError::Index { path: path(), index, count: first.count });
        }
        let bit_offset = self.bit_offset + index * first.stride;
        Ok(FieldView { bytes: self.bytes, leaf: self.leaf, bit_offset, dims: SmallVec::from_slice(rest) })
    }

    /// All elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = FieldView<'a>> + use<'a> {
        let view = self.clone();
        let total = if view.dims.iter().any(|d| d.count == 0) {
            0
        } else {
            view.dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.count)).unwrap_or(u64::MAX)
        };
        (0..total).map(move |flat| {
            let (mut rest, mut bit_offset) = (flat, view.bit_offset);
            for dim in view.dims.iter().rev() {
                bit_offset += rest % dim.count * dim.stride;
                rest /= dim.count;
            }
            FieldView { bytes: view.bytes, leaf: view.leaf, bit_offset, dims: SmallVec::new() }
        })
    }

    fn kind_error(&self, expected: &'static str) -> RecordError {
        RecordError::Kind { expected, actual: self.leaf.to_string() }
    }

    /// The element's bits in the low end of a word.
    ///
    /// # Errors
    /// When there are several elements, or one of more than 64 bits.
    pub fn bits(&self) -> Result<u64, RecordError> {
        self.single()?;
        let width = self.leaf.bit_width();
        bits::read(self.bytes, self.bit_offset, width).ok_or_else(|| self.kind_error("64 bits"))
    }

    fn single(&self) -> Result<(), RecordError> {
        if self.dims.is_empty() {
            return Ok(());
        }
        let count = self.dims.iter().fold(1u64, |n, d| n.saturating_mul(d.count));
        Err(RecordError::Elements { path: String::new(), count })
    }

    /// The element, an unsigned integer, a bit field, or a signed integer that is not negative.
    ///
    /// # Errors
    /// When it is no such number, or there are several.
    pub fn as_u64(&self) -> Result<u64, RecordError> {
        match self.as_integer("an unsigned integer")? {
            Integer::Unsigned(value) => Ok(value),
            Integer::Signed(value) => u64::try_from(value)
                .map_err(|_| RecordError::TooLarge { expected: "u64", value: value.to_string() }),
        }
    }

    /// The element, an integer of any width or a bit field.
    ///
    /// # Errors
    /// When it is no integer, does not fit, or there are several.
    pub fn as_i64(&self) -> Result<i64, RecordError> {
        match self.as_integer("an integer")? {
            Integer::Signed(value) => Ok(value),
            Integer::Unsigned(value) => i64::try_from(value)
                .map_err(|_| RecordError::TooLarge { expected: "i64", value: value.to_string() }),
        }
    }

    fn as_integer(&self, expected: &'static str) -> Result<Integer, RecordError> {
        let bits = self.bits()?;
        match self.leaf {
            Leaf::Bits(_) => Ok(Integer::Unsigned(bits)),
            Leaf::Scalar(
                DType::Bool
                | DType::Uint2
                | DType::Uint4
                | DType::Uint8
                | DType::Uint16
                | DType::Uint32
                | DType::Uint64,
            ) => Ok(Integer::Unsigned(bits)),
            Leaf::Scalar(dtype) if dtype.is_integer() => {
                Ok(Integer::Signed(bits::sign_extend(bits, self.leaf.bit_width())))
            }
            Leaf::Scalar(_) => Err(self.kind_error(expected)),
        }
    }

    /// The element as a number: floats of all kinds exactly, integers rounded to nearest where they exceed 53 bits.
    ///
    /// # Errors
    /// When it is complex, or there are several.
    pub fn as_f64(&self) -> Result<f64, RecordError> {
        let Leaf::Scalar(dtype) = self.leaf else { return Ok(self.bits()? as f64) };
        if !dtype.is_float() {
            return match self.as_integer("a number")? {
                Integer::Unsigned(value) => Ok(value as f64),
                Integer::Signed(value) => Ok(value as f64),
            };
        }
        let bits = self.bits()?;
        // `bits` has no more than the type's own bits set.
        Ok(match dtype {
            DType::Double => f64::from_bits(bits),
            DType::Float => f64::from(f32::from_bits(bits as u32)),
            DType::Float16 => half::f16::from_bits(bits as u16).to_f64(),
            DType::BFloat16 => half::bf16::from_bits(bits as u16).to_f64(),
            DType::Float8E8M0 => f64::from(e8m0_to_f32(bits as u8)),
            _ => match SmallFloat::of(dtype) {
                Some(float) => f64::from(float.decode(bits as u8)),
                None => return Err(self.kind_error("a number")),
            },
        })
    }

    /// The real and imaginary parts of a complex element.
    ///
    /// # Errors
    /// When it is not complex, or there are several.
    pub fn as_complex(&self) -> Result<(f64, f64), RecordError> {
        self.single()?;
        let half = |part: u64, width: u32| {
            bits::read(self.bytes, self.bit_offset + part * u64::from(width), width)
                .ok_or_else(|| self.kind_error("a complex number"))
        };
        match self.leaf {
            Leaf::Scalar(DType::Complex64) => {
                let part = |i| half(i, 32).map(|bits| f64::from(f32::from_bits(bits as u32)));
                Ok((part(0)?, part(1)?))
            }
            Leaf::Scalar(DType::Complex128) => {
                Ok((half(0, 64).map(f64::from_bits)?, half(1, 64).map(f64::from_bits)?))
            }
            _ => Err(self.kind_error("a complex number")),
        }
    }
}

enum Integer {
    Signed(i64),
    Unsigned(u64),
}

impl StructLayout {
    /// The records in `payload`.
    ///
    /// # Errors
    /// When the payload ends within a record.
    pub fn records<'a>(&'a self, payload: &'a Bytes) -> Result<Records<'a>, RecordError> {
        Records::new(self, payload)
    }
}
