//! The forms that initializers can get.

use std::str::FromStr;

use heirloom_formats::{FORMATS, Format, by_name};
use heirloom_mem::DType;

/// A form of encoded initializers. From text: the name of a [format](FORMATS), `int8`, `uint8`, `int4`, `uint4`, `int2`
/// or `uint2` for affine codes, `nvfp4`, or `k_means:16` for a codebook of so many entries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// Records of a format of the table.
    Records(&'static Format),
    /// One record of a type for the tensor's shape.
    Shaped(ShapedTarget),
    /// Affine codes, in the layout that is built in.
    Affine(AffineTarget),
}

/// A family of formats with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapedTarget {
    /// NVFP4.
    Nvfp4,
    /// A codebook that is fitted to the tensor.
    KMeans {
        /// Its entries.
        entries: usize,
    },
}

/// Affine codes: signed ones without zero point, unsigned ones with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffineTarget {
    /// INT8, UINT8, INT4, UINT4, INT2 or UINT2.
    pub storage: DType,
    /// One scale for each index of this axis; negative ones count from the end. `None`: one for the tensor.
    pub axis: Option<i64>,
    /// One scale for so many elements along the axis.
    pub block_size: Option<usize>,
}

/// Text that names no form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No format has the name.
    #[error(
        "there is no format `{name}`; there are {known}, int8, uint8, int4, uint4, int2, uint2, nvfp4 and k_means:ENTRIES"
    )]
    Unknown {
        /// The text.
        name: String,
        /// The formats of the table.
        known: String,
    },
    /// The codebook's size is none.
    #[error("`{text}` names no size of a codebook: 2 to 65536 entries, such as `k_means:16`")]
    Entries {
        /// The text.
        text: String,
    },
    /// An axis or block size for records.
    #[error("`{name}` has blocks of its own: an axis or block size is for int8, int4 and the like")]
    NoAxis {
        /// The format.
        name: String,
    },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        if let Some(format) = by_name(text) {
            return Ok(Target::Records(format));
        }
        let affine = |storage| {
            // Four bits and less need more scales than one.
            let narrow = !matches!(storage, DType::Int8 | DType::Uint8);
            let (axis, block_size) = if narrow { (Some(-1), Some(32)) } else { (None, None) };
            Ok(Target::Affine(AffineTarget { storage, axis, block_size }))
        };
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "int8" => affine(DType::Int8),
            "uint8" => affine(DType::Uint8),
            "int4" => affine(DType::Int4),
            "uint4" => affine(DType::Uint4),
            "int2" => affine(DType::Int2),
            "uint2" => affine(DType::Uint2),
            "nvfp4" => Ok(Target::Shaped(ShapedTarget::Nvfp4)),
            _ => match lower.strip_prefix("k_means:") {
                Some(entries) => {
                    let entries = entries.parse().ok().filter(|n| (2..=65_536).contains(n));
                    let entries = entries.ok_or_else(|| TargetError::Entries { text: text.into() })?;
                    Ok(Target::Shaped(ShapedTarget::KMeans { entries }))
                }
                None => {
                    let known = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
                    Err(TargetError::Unknown { name: text.into(), known })
                }
            },
        }
    }
}

impl Target {
    /// The same along another axis, or in other blocks; `None` keeps what there is. Blocks go along the last axis unless
    /// another one is given; an axis without a block size means a scale for each of its indices.
    ///
    /// # Errors
    /// When the form is not affine and one of them is given.
    pub fn along(self, axis: Option<i64>, block_size: Option<usize>) -> Result<Target, TargetError> {
        if axis.is_none() && block_size.is_none() {
            return Ok(self);
        }
        let name = match self {
            Target::Affine(AffineTarget { storage, .. }) => {
                let axis = axis.or(block_size.map(|_| -1));
                return Ok(Target::Affine(AffineTarget { storage, axis, block_size }));
            }
            Target::Records(format) => format.name,
            Target::Shaped(_) => "the format",
        };
        Err(TargetError::NoAxis { name: name.into() })
    }
}
