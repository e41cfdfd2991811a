//! The element types of GGUF tensors that we read.

use heirloom_formats::{FORMATS, Format, by_gguf_type};
use heirloom_mem::DType;

/// What a tensor's bytes mean.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// One number after the other.
    Dense(DType),
    /// Records of a block format.
    Blocks(&'static Format),
}

/// An element type or block format.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its number in GGUF.
    pub number: u32,
    /// Its name, in lower case.
    pub name: &'static str,
    /// Elements of one record; 1 for dense types.
    pub elements: u64,
    /// Bytes of one record.
    pub bytes: u64,
    /// What the bytes mean.
    pub storage: Storage,
}

const fn dense(number: u32, name: &'static str, bytes: u64, dtype: DType) -> Kind {
    Kind { number, name, elements: 1, bytes, storage: Storage::Dense(dtype) }
}

const DENSE: [Kind; 6] = [
    dense(0, "f32", 4, DType::Float),
    dense(24, "i8", 1, DType::Int8),
    dense(25, "i16", 2, DType::Int16),
    dense(26, "i32", 4, DType::Int32),
    dense(27, "i64", 8, DType::Int64),
    dense(28, "f64", 8, DType::Double),
];

/// What GGUF calls its block types, also those that we do not read.
const BLOCK_NAMES: [(u32, &str); 29] = [
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (29, "IQ1_M"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (36, "IQ4_NL_4_4"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// The type with GGUF's `number`, if we read it.
pub(super) fn find(number: u32) -> Option<Kind> {
    DENSE.iter().find(|kind| kind.number == number).copied().or_else(|| by_gguf_type(number).and_then(blocks))
}

fn blocks(format: &'static Format) -> Option<Kind> {
    let number = format.gguf_type?;
    Some(Kind {
        number,
        name: format.name,
        elements: u64::try_from(format.elements).ok()?,
        bytes: u64::try_from(format.record_bytes).ok()?,
        storage: Storage::Blocks(format),
    })
}

/// The names of all types that we read, in the order of their numbers.
pub(super) fn known() -> Vec<&'static str> {
    let mut kinds: Vec<Kind> = DENSE.into_iter().chain(FORMATS.iter().copied().filter_map(blocks)).collect();
    kinds.sort_by_key(|kind| kind.number);
    kinds.into_iter().map(|kind| kind.name).collect()
}

/// What GGUF calls its block type `number`.
pub(super) fn gguf_name(number: u32) -> Option<&'static str> {
    BLOCK_NAMES.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}
