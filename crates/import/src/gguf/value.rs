//! Metadata values, read from the mapping when they are asked for.

use std::fmt;

/// The types of metadata values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    /// The type with GGUF's number.
    pub fn from_number(number: u32) -> Option<Self> {
        use ValueType::*;
        const TYPES: [ValueType; 13] = [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64];
        TYPES.get(usize::try_from(number).ok()?).copied()
    }

    /// Bytes of one value; `None` where that varies.
    pub(super) fn width(self) -> Option<u64> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }
}

/// A metadata value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Any unsigned integer type.
    Unsigned(u64),
    /// Any signed integer type.
    Signed(i64),
    /// Either float type.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// The bytes of a string, by the format UTF-8.
    String(&'a [u8]),
    /// Values of one type.
    Array(Array<'a>),
}

impl<'a> Value<'a> {
    /// A non-negative integer.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(value),
            Self::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// An integer.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Unsigned(value) => i64::try_from(value).ok(),
            Self::Signed(value) => Some(value),
            _ => None,
        }
    }

    /// A float.
    pub fn as_f64(self) -> Option<f64> {
        if let Self::Float(value) = self { Some(value) } else { None }
    }

    /// A boolean.
    pub fn as_bool(self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(value) } else { None }
    }

    /// A string that is UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// A string's bytes.
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        if let Self::String(value) = self { Some(value) } else { None }
    }

    /// An array.
    pub fn as_array(self) -> Option<Array<'a>> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }

    /// Reads the value of type `kind` at the start of `bytes`, which the reader has checked; also how many bytes it
    /// takes.
    pub(super) fn read(kind: ValueType, bytes: &'a [u8]) -> Option<(Self, usize)> {
        let fixed = |width: usize| bytes.get(..width);
        macro_rules! number {
            ($type:ty, $variant:ident) => {{
                let value = <$type>::from_le_bytes(*bytes.first_chunk()?);
                (Self::$variant(value.into()), size_of::<$type>())
            }};
        }
        Some(match kind {
            ValueType::U8 => number!(u8, Unsigned),
            ValueType::U16 => number!(u16, Unsigned),
            ValueType::U32 => number!(u32, Unsigned),
            ValueType::U64 => number!(u64, Unsigned),
            ValueType::I8 => number!(i8, Signed),
            ValueType::I16 => number!(i16, Signed),
            ValueType::I32 => number!(i32, Signed),
            ValueType::I64 => number!(i64, Signed),
            ValueType::F32 => number!(f32, Float),
            ValueType::F64 => number!(f64, Float),
            ValueType::Bool => (Self::Bool(fixed(1)? != [0]), 1),
            ValueType::String => {
                let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
                (Self::String(bytes[8..].get(..length)?), 8 + length)
            }
            ValueType::Array => {
                let element = ValueType::from_number(u32::from_le_bytes(*bytes.first_chunk()?))?;
                let rest = bytes.get(4..)?;
                let count = usize::try_from(u64::from_le_bytes(*rest.first_chunk()?)).ok()?;
                let array = Array { element, count, bytes: rest.get(8..)? };
                // How far it extends is not known without walking it, and nobody asks.
                (Self::Array(array), bytes.len())
            }
        })
    }
}

impl fmt::Display for Value<'_> {
    /// The value, shortened where it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::String(bytes) => {
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
                let short: String = text.chars().take(60).collect();
                let more = if short.len() < bytes.len() { "…" } else { "" };
                write!(f, "{short:?}{more}")
            }
            Self::Array(array) => write!(f, "an array of {} {}", array.len(), array.element().name()),
        }
    }
}

/// Values of one type, in the mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Array<'a> {
    element: ValueType,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// The type of its elements.
    pub fn element(&self) -> ValueType {
        self.element
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements, in order. Elements that are arrays themselves end the iteration after the first.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let Self { element, count, mut bytes } = *self;
        (0..count).map_while(move |_| {
            let (value, length) = Value::read(element, bytes)?;
            bytes = bytes.get(length..)?;
            Some(value)
        })
    }

    /// The bytes of the elements of an array of strings; none of any other array.
    pub fn strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.iter().map_while(Value::as_bytes)
    }

    /// The elements of an array of `f32`; none of any other array.
    pub fn floats(&self) -> impl Iterator<Item = f32> + use<'a> {
        self.words(ValueType::F32).map(f32::from_le_bytes)
    }

    /// The elements of an array of `i32`; none of any other array.
    pub fn integers(&self) -> impl Iterator<Item = i32> + use<'a> {
        self.words(ValueType::I32).map(i32::from_le_bytes)
    }

    fn words(&self, element: ValueType) -> impl Iterator<Item = [u8; 4]> + use<'a> {
        let count = if self.element == element { self.count } else { 0 };
        self.bytes.as_chunks().0.iter().take(count).copied()
    }
}
