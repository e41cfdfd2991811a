//! One field of all records as a tensor: what a decoder in a file reads.

use heirloom_mem::{BytesMut, DType, Ledger, Shape, Tensor, copy};

use crate::slot::SlotDim;
use crate::{Leaf, RecordError, Records, Slot, bits};

impl Records<'_> {
    /// The leaves `slot` of all records as a tensor `[records, *slot's dimensions]`. Integers of whole bytes and all
    /// floats keep their type; narrower integers and bit fields widen to the narrowest type of 8, 16, 32 or 64 bits
    /// that holds them (bit fields are unsigned).
    ///
    /// # Errors
    /// When the tensor would be too large.
    pub fn column(&self, slot: &Slot, ledger: &Ledger) -> Result<Tensor, RecordError> {
        let dtype = widened(slot.leaf);
        let count = slot.elements().map(|n| u128::from(n) * self.len() as u128);
        let too_many = || RecordError::TooManyElements { dtype, count: count.unwrap_or(u128::MAX) };
        let total = count.and_then(|n| usize::try_from(n).ok()).ok_or_else(too_many)?;
        let bytes =
            dtype.payload_bytes(total).filter(|&n| isize::try_from(n).is_ok()).ok_or_else(too_many)?;
        let mut shape = Shape::from_slice(&[self.len()]);
        for dim in &slot.dims {
            shape.push(usize::try_from(dim.count).map_err(|_| too_many())?);
        }
        let mut out = BytesMut::zeroed(bytes, ledger);
        if total > 0 {
            let (from, to) = (slot.leaf.bit_width(), dtype.bit_width().unwrap_or(8));
            let signed = matches!(slot.leaf, Leaf::Scalar(DType::Int4 | DType::Int2));
            let mut writer = Writer { out: out.as_mut_slice(), at: 0, from, to, signed, ledger };
            for record in self.payload().chunks_exact(self.record_bytes()) {
                writer.elements(record, slot.bit_offset, &slot.dims);
            }
        }
        Tensor::new(dtype, &shape, out.freeze()).map_err(|_| too_many())
    }
}

/// The tensor element type that a leaf reads as.
fn widened(leaf: Leaf) -> DType {
    match leaf {
        Leaf::Scalar(DType::Uint4 | DType::Uint2) => DType::Uint8,
        Leaf::Scalar(DType::Int4 | DType::Int2) => DType::Int8,
        Leaf::Scalar(dtype) => dtype,
        Leaf::Bits(0..=8) => DType::Uint8,
        Leaf::Bits(9..=16) => DType::Uint16,
        Leaf::Bits(17..=32) => DType::Uint32,
        Leaf::Bits(_) => DType::Uint64,
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    /// The next bit to write.
    at: u64,
    /// Bits of an element in the record and in the tensor.
    from: u32,
    to: u32,
    signed: bool,
    ledger: &'a Ledger,
}

impl Writer<'_> {
    /// The elements of one record. There is at least one.
    fn elements(&mut self, record: &[u8], offset: u64, dims: &[SlotDim]) {
        match dims {
            [] => self.element(record, offset),
            [only] if self.run(record, offset, *only) => {}
            [first, rest @ ..] => {
                for i in 0..first.count {
                    self.elements(record, offset + i * first.stride, rest);
                }
            }
        }
    }

    /// Elements one behind the other that begin at a boundary of their own width, all at once.
    fn run(&mut self, record: &[u8], offset: u64, dim: SlotDim) -> bool {
        let (from, to) = (u64::from(self.from), u64::from(self.to));
        let regular = dim.stride == from && offset.is_multiple_of(from) && self.at.is_multiple_of(8);
        let Ok(count) = usize::try_from(dim.count) else { return false };
        let start = (self.at / 8) as usize;
        if regular && from == to && from % 8 == 0 {
            let (at, len) = ((offset / 8) as usize, count * (from / 8) as usize);
            let to = &mut self.out[start..start + len];
            copy::into(to, &record[at..at + len], copy::Purpose::Kernel, self.ledger);
        } else if regular && to == 8 && from < 8 {
            let out = &mut self.out[start..start + count];
            bits::unpack(record, self.from, (offset / from) as usize, out);
            if self.signed {
                let shift = 8 - self.from;
                out.iter_mut().for_each(|code| *code = (((*code << shift) as i8) >> shift) as u8);
            }
        } else {
            return false;
        }
        self.at += dim.count * to;
        true
    }

    fn element(&mut self, record: &[u8], offset: u64) {
        // Wider elements than 64 bits (COMPLEX128) go in two halves of equal width on both sides.
        let parts = if self.from > 64 { 2 } else { 1 };
        let (from, to) = (self.from / parts, self.to / parts);
        for part in 0..parts {
            let read = bits::read(record, offset + u64::from(part * from), from).unwrap_or(0);
            let value = if self.signed { bits::sign_extend(read, from).cast_unsigned() } else { read };
            bits::write(self.out, self.at, to, value);
            self.at += u64::from(to);
        }
    }
}
