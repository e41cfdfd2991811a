//! The element types of ONNX tensors.

use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An ONNX `TensorProto.DataType`; the discriminants are ONNX's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum DType {
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    BFloat16 = 16,
    Float8E4M3FN = 17,
    Float8E4M3FNUZ = 18,
    Float8E5M2 = 19,
    Float8E5M2FNUZ = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4E2M1 = 23,
    Float8E8M0 = 24,
    Uint2 = 25,
    Int2 = 26,
    Float6E2M3 = 27,
    Float6E3M2 = 28,
}

impl DType {
    /// All element types, in the order of their numbers.
    pub const ALL: [DType; 28] = {
        use DType::*;
        [
            Float,
            Uint8,
            Int8,
            Uint16,
            Int16,
            Int32,
            Int64,
            String,
            Bool,
            Float16,
            Double,
            Uint32,
            Uint64,
            Complex64,
            Complex128,
            BFloat16,
            Float8E4M3FN,
            Float8E4M3FNUZ,
            Float8E5M2,
            Float8E5M2FNUZ,
            Uint4,
            Int4,
            Float4E2M1,
            Float8E8M0,
            Uint2,
            Int2,
            Float6E2M3,
            Float6E3M2,
        ]
    };

    /// The type with ONNX's number `onnx`, or `None` for 0 (UNDEFINED) and numbers that this version does not know.
    pub fn from_onnx(onnx: i32) -> Option<DType> {
        let index = usize::try_from(onnx).ok()?.checked_sub(1)?;
        DType::ALL.get(index).copied()
    }

    /// ONNX's number of this type.
    pub fn onnx(self) -> i32 {
        i32::from(self as u8)
    }

    /// Bits that one element takes in a raw payload; `None` for strings, which have no fixed width.
    pub fn bit_width(self) -> Option<u32> {
        use DType::*;
        Some(match self {
            String => return None,
            Uint2 | Int2 => 2,
            Uint4 | Int4 | Float4E2M1 => 4,
            Float6E2M3 | Float6E3M2 => 6,
            Uint8 | Int8 | Bool | Float8E4M3FN | Float8E4M3FNUZ | Float8E5M2 | Float8E5M2FNUZ
            | Float8E8M0 => 8,
            Uint16 | Int16 | Float16 | BFloat16 => 16,
            Float | Int32 | Uint32 => 32,
            Int64 | Uint64 | Double | Complex64 => 64,
            Complex128 => 128,
        })
    }

    /// Bytes of `elements` elements, the last byte filled up; `None` for strings and on overflow.
    pub fn payload_bytes(self, elements: usize) -> Option<usize> {
        let bits = (elements as u128).checked_mul(u128::from(self.bit_width()?))?;
        usize::try_from(bits.div_ceil(8)).ok()
    }

    /// ONNX's upper-case name, such as `FLOAT` or `INT4`.
    pub fn name(self) -> &'static str {
        use DType::*;
        match self {
            Float => "FLOAT",
            Uint8 => "UINT8",
            Int8 => "INT8",
            Uint16 => "UINT16",
            Int16 => "INT16",
            Int32 => "INT32",
            Int64 => "INT64",
            String => "STRING",
            Bool => "BOOL",
            Float16 => "FLOAT16",
            Double => "DOUBLE",
            Uint32 => "UINT32",
            Uint64 => "UINT64",
            Complex64 => "COMPLEX64",
            Complex128 => "COMPLEX128",
            BFloat16 => "BFLOAT16",
            Float8E4M3FN => "FLOAT8E4M3FN",
            Float8E4M3FNUZ => "FLOAT8E4M3FNUZ",
            Float8E5M2 => "FLOAT8E5M2",
            Float8E5M2FNUZ => "FLOAT8E5M2FNUZ",
            Uint4 => "UINT4",
            Int4 => "INT4",
            Float4E2M1 => "FLOAT4E2M1",
            Float8E8M0 => "FLOAT8E8M0",
            Uint2 => "UINT2",
            Int2 => "INT2",
            Float6E2M3 => "FLOAT6E2M3",
            Float6E3M2 => "FLOAT6E3M2",
        }
    }

    /// Whether elements are floating-point numbers (of any width).
    pub fn is_float(self) -> bool {
        use DType::*;
        matches!(
            self,
            Float
                | Float16
                | Double
                | BFloat16
                | Float8E4M3FN
                | Float8E4M3FNUZ
                | Float8E5M2
                | Float8E5M2FNUZ
                | Float4E2M1
                | Float8E8M0
                | Float6E2M3
                | Float6E3M2
        )
    }

    /// Whether elements are integers (of any width, signed or not; not BOOL).
    pub fn is_integer(self) -> bool {
        use DType::*;
        matches!(
            self,
            Uint8 | Int8 | Uint16 | Int16 | Int32 | Int64 | Uint32 | Uint64 | Uint4 | Int4 | Uint2 | Int2
        )
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that holds one element of a [`DType`] bit for bit.
pub trait Element:
    sealed::Sealed + FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Default + Send + Sync + 'static
{
    /// The ONNX type whose elements this type holds.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty { const DTYPE: DType = DType::$dtype; }
    )*};
}
elements! {
    f32 => Float, u8 => Uint8, i8 => Int8, u16 => Uint16, i16 => Int16, i32 => Int32, i64 => Int64,
    f16 => Float16, f64 => Double, u32 => Uint32, u64 => Uint64, bf16 => BFloat16,
}
