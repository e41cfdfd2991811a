//! Packed number lists of tensors, left in place in the file until somebody changes them.

use heirloom_mem::Bytes;

use crate::error::Problem;
use crate::wire::{Reader, low32, put_varint, varint_len, wide};

mod element {
    /// How a number lies in a packed list.
    pub trait Element: Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static {
        /// The bytes of an element; `None`: a varint.
        const SIZE: Option<usize>;
        #[doc(hidden)]
        fn read(reader: &mut super::Reader<'_>) -> Result<Self, super::Problem>;
        /// Equal bits.
        #[doc(hidden)]
        fn same(self, other: Self) -> bool;
        #[doc(hidden)]
        fn length(self) -> u64;
        #[doc(hidden)]
        fn write(self, to: &mut Vec<u8>);
        #[doc(hidden)]
        fn empty() -> &'static super::Packed<Self>;
    }
}
pub(crate) use element::Element;

macro_rules! element {
    ($type:ty, fixed $size:literal) => {
        impl Element for $type {
            const SIZE: Option<usize> = Some($size);
            fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
                reader.fixed::<$size>().map(<$type>::from_le_bytes)
            }
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
            fn length(self) -> u64 {
                $size
            }
            fn write(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn empty() -> &'static Packed<Self> {
                static EMPTY: Packed<$type> = Packed(Store::List(Vec::new()));
                &EMPTY
            }
        }
    };
    ($type:ty, varint $read:expr, $write:expr) => {
        impl Element for $type {
            const SIZE: Option<usize> = None;
            fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
                reader.varint().map($read)
            }
            fn same(self, other: Self) -> bool {
                self == other
            }
            fn length(self) -> u64 {
                varint_len($write(self))
            }
            fn write(self, to: &mut Vec<u8>) {
                put_varint(to, $write(self));
            }
            fn empty() -> &'static Packed<Self> {
                static EMPTY: Packed<$type> = Packed(Store::List(Vec::new()));
                &EMPTY
            }
        }
    };
}
element!(f32, fixed 4);
element!(f64, fixed 8);
element!(i32, varint | v | low32(v).cast_signed(), |v| i64::from(v).cast_unsigned());
element!(i64, varint u64::cast_signed, i64::cast_unsigned);
element!(u64, varint | v | v, |v| v);

/// A packed list of numbers.
///
/// A list that was read stays in the file: its bytes are shared, and elements are decoded as they are asked for.
/// `T` is one of `f32`, `f64`, `i32`, `i64`, `u64`.
#[derive(Clone)]
pub struct Packed<T>(Store<T>);

#[derive(Clone)]
enum Store<T> {
    InPlace { bytes: Bytes, count: usize },
    List(Vec<T>),
}

impl<T> Default for Packed<T> {
    fn default() -> Packed<T> {
        Packed(Store::List(Vec::new()))
    }
}

impl<T: Element> Packed<T> {
    /// How many numbers.
    pub fn len(&self) -> usize {
        match &self.0 {
            Store::InPlace { count, .. } => *count,
            Store::List(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The packed bytes where they lie in the file: little-endian for floats, varints for integers.
    /// `None` when the list is empty, was set by a program, or was not written in one piece.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Store::InPlace { bytes, .. } => Some(bytes),
            Store::List(_) => None,
        }
    }

    /// The numbers in order.
    pub fn iter(&self) -> PackedIter<'_, T> {
        match &self.0 {
            Store::InPlace { bytes, count } => {
                PackedIter { reader: Reader::new(bytes), list: [].iter(), left: *count }
            }
            Store::List(list) => PackedIter { reader: Reader::new(&[]), list: list.iter(), left: list.len() },
        }
    }

    pub(crate) fn list_mut(&mut self) -> &mut Vec<T> {
        if let Store::InPlace { .. } = self.0 {
            self.0 = Store::List(self.iter().collect());
        }
        match &mut self.0 {
            Store::List(list) => list,
            Store::InPlace { .. } => unreachable!("replaced above"),
        }
    }
}

/// Equal numbers, floats by their bits.
impl<T: Element> PartialEq for Packed<T> {
    fn eq(&self, other: &Packed<T>) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a.same(b))
    }
}

impl<T: Element> std::fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Element> IntoIterator for &'a Packed<T> {
    type Item = T;
    type IntoIter = PackedIter<'a, T>;
    fn into_iter(self) -> PackedIter<'a, T> {
        self.iter()
    }
}

/// The numbers of a packed list.
pub struct PackedIter<'a, T> {
    reader: Reader<'a>,
    list: std::slice::Iter<'a, T>,
    left: usize,
}

impl<T: Element> Iterator for PackedIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        match self.list.next() {
            Some(value) => Some(*value),
            None => T::read(&mut self.reader).ok(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Element> ExactSizeIterator for PackedIter<'_, T> {}

/// A packed list without its element type, for the one merge loop and the one writer.
pub(crate) trait PackedList {
    /// Adds a chunk; `charge` is asked before memory is taken.
    fn add(
        &mut self,
        chunk: &Bytes,
        charge: &mut dyn FnMut(u64) -> Result<(), Problem>,
    ) -> Result<(), (Problem, usize)>;
    /// Adds an element that stands alone.
    fn add_one(&mut self, reader: &mut Reader<'_>) -> Result<(), Problem>;
    fn is_empty(&self) -> bool;
    /// How many numbers are still in place, and would take memory if the list grew.
    fn count_in_place(&self) -> usize;
    /// The bytes of the list without tag and length.
    fn length(&self) -> u64;
    fn in_place(&self) -> Option<&Bytes>;
    fn write(&self, write: &mut dyn FnMut(&[u8]));
    fn equals(&self, other: &dyn PackedList) -> bool;
    fn debug(&self) -> &dyn std::fmt::Debug;
    fn as_any(&self) -> &dyn std::any::Any;
}

impl<T: Element> PackedList for Packed<T> {
    fn add(
        &mut self,
        chunk: &Bytes,
        charge: &mut dyn FnMut(u64) -> Result<(), Problem>,
    ) -> Result<(), (Problem, usize)> {
        // The canonical length tells a list that can stay in place from one with padded varints.
        let mut reader = Reader::new(chunk);
        let (mut count, mut canonical) = (0usize, 0u64);
        match T::SIZE {
            Some(size) if !chunk.len().is_multiple_of(size) => {
                return Err((Problem::PackedLength { length: wide(chunk.len()), size: wide(size) }, 0));
            }
            Some(size) => (count, canonical) = (chunk.len() / size, wide(chunk.len())),
            None => {
                while !reader.is_at_end() {
                    canonical += T::read(&mut reader).map_err(|problem| (problem, reader.at))?.length();
                    count += 1;
                }
            }
        }
        if count == 0 {
            return Ok(());
        }
        if self.is_empty() && canonical == wide(chunk.len()) {
            self.0 = Store::InPlace { bytes: chunk.clone(), count };
            return Ok(());
        }
        charge(wide(count + self.count_in_place()).saturating_mul(wide(size_of::<T>())))
            .map_err(|problem| (problem, 0))?;
        let list = self.list_mut();
        let mut reader = Reader::new(chunk);
        while !reader.is_at_end() {
            list.push(T::read(&mut reader).map_err(|problem| (problem, reader.at))?);
        }
        Ok(())
    }

    fn add_one(&mut self, reader: &mut Reader<'_>) -> Result<(), Problem> {
        let value = T::read(reader)?;
        self.list_mut().push(value);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        Packed::is_empty(self)
    }

    fn count_in_place(&self) -> usize {
        match self.0 {
            Store::InPlace { count, .. } => count,
            Store::List(_) => 0,
        }
    }

    fn length(&self) -> u64 {
        match &self.0 {
            Store::InPlace { bytes, .. } => wide(bytes.len()),
            Store::List(list) => list.iter().map(|value| value.length()).sum(),
        }
    }

    fn in_place(&self) -> Option<&Bytes> {
        self.bytes()
    }

    fn write(&self, write: &mut dyn FnMut(&[u8])) {
        let mut buffer = Vec::new();
        for value in self {
            buffer.clear();
            value.write(&mut buffer);
            write(&buffer);
        }
    }

    fn equals(&self, other: &dyn PackedList) -> bool {
        other.as_any().downcast_ref::<Packed<T>>().is_some_and(|other| self == other)
    }

    fn debug(&self) -> &dyn std::fmt::Debug {
        self
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
