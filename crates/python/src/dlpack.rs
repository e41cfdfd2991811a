//! DLPack's structs and numbers (dlpack.h, version 1.0), and which element types they can name.

use std::ffi::{CStr, c_void};
use std::fmt;

use heirloom::mem::DType;

use crate::foreign::Deleter;

/// A capsule that nobody consumed yet, and its name afterwards.
pub(crate) const NAME: &CStr = c"dltensor";
pub(crate) const USED: &CStr = c"used_dltensor";
/// The same of the layout with a version.
pub(crate) const NAME_VERSIONED: &CStr = c"dltensor_versioned";
pub(crate) const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
pub(crate) const FLAG_READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DLDevice {
    pub(crate) device_type: i32,
    pub(crate) device_id: i32,
}

impl DLDevice {
    /// `kDLCPU`.
    pub(crate) const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DLDataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
pub(crate) struct DLTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: DLDevice,
    pub(crate) ndim: i32,
    pub(crate) dtype: DLDataType,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

#[repr(C)]
pub(crate) struct DLManagedTensor {
    pub(crate) dl_tensor: DLTensor,
    pub(crate) manager_ctx: *mut c_void,
    pub(crate) deleter: Option<Deleter<DLManagedTensor>>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DLPackVersion {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

#[repr(C)]
pub(crate) struct DLManagedTensorVersioned {
    pub(crate) version: DLPackVersion,
    pub(crate) manager_ctx: *mut c_void,
    pub(crate) deleter: Option<Deleter<DLManagedTensorVersioned>>,
    pub(crate) flags: u64,
    pub(crate) dl_tensor: DLTensor,
}

/// Element types by `DLDataTypeCode` and width. 8-bit floats have codes of their own since version 1.1.
const TYPES: [(DType, u8, u8); 20] = [
    (DType::Int8, 0, 8),
    (DType::Int16, 0, 16),
    (DType::Int32, 0, 32),
    (DType::Int64, 0, 64),
    (DType::Uint8, 1, 8),
    (DType::Uint16, 1, 16),
    (DType::Uint32, 1, 32),
    (DType::Uint64, 1, 64),
    (DType::Float16, 2, 16),
    (DType::Float, 2, 32),
    (DType::Double, 2, 64),
    (DType::BFloat16, 4, 16),
    (DType::Complex64, 5, 64),
    (DType::Complex128, 5, 128),
    (DType::Bool, 6, 8),
    (DType::Float8E4M3FN, 10, 8),
    (DType::Float8E4M3FNUZ, 11, 8),
    (DType::Float8E5M2, 12, 8),
    (DType::Float8E5M2FNUZ, 13, 8),
    (DType::Float8E8M0, 14, 8),
];

/// How DLPack names an element type.
pub(crate) fn dtype_of(dtype: DType) -> Option<DLDataType> {
    let (_, code, bits) = TYPES.iter().find(|(known, ..)| *known == dtype)?;
    Some(DLDataType { code: *code, bits: *bits, lanes: 1 })
}

/// The element type that DLPack names so.
pub(crate) fn from_text(text: &str) -> Option<DType> {
    let named = |code: u8, bits: u8| DLDataType { code, bits, lanes: 1 }.to_string();
    TYPES.iter().find(|(_, code, bits)| named(*code, *bits) == text).map(|(dtype, ..)| *dtype)
}

impl fmt::Display for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.code {
            0 => "int",
            1 => "uint",
            2 => "float",
            3 => "handle",
            4 => "bfloat",
            5 => "complex",
            6 => "bool",
            code => return write!(f, "DLPack type code {code} of {} bits × {}", self.bits, self.lanes),
        };
        write!(f, "{kind}{}", self.bits)?;
        if self.lanes == 1 { Ok(()) } else { write!(f, "×{}", self.lanes) }
    }
}
