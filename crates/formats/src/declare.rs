//! Parts that the declarations of several formats share.

use heirloom_types::{StructBuilder, StructType};

/// `record` with `rows` rows of `count` groups of bit fields, lowest first, under the name `name`.
pub(crate) fn with_bit_rows(
    record: StructBuilder,
    name: &str,
    components: &[(&str, u32)],
    count: u64,
    rows: u64,
) -> StructBuilder {
    match StructType::bit_packing("", components, count).build() {
        Ok(row) => record.nested_array(name, &row, rows),
        // The builder meets the same fault, and keeps it.
        Err(_) => record.bits(name, components, count),
    }
}

/// The two 4-bit parts of a byte.
pub(crate) const NIBBLES: [(&str, u32); 2] = [("low", 4), ("high", 4)];

/// The four 2-bit parts of a byte.
pub(crate) const QUARTERS: [(&str, u32); 4] = [("bits0", 2), ("bits2", 2), ("bits4", 2), ("bits6", 2)];

/// The eight bits of a byte.
pub(crate) const SINGLE_BITS: [(&str, u32); 8] =
    [("bit0", 1), ("bit1", 1), ("bit2", 1), ("bit3", 1), ("bit4", 1), ("bit5", 1), ("bit6", 1), ("bit7", 1)];

/// The names of components.
pub(crate) fn names<const N: usize>(components: &[(&'static str, u32); N]) -> [&'static str; N] {
    components.map(|(name, _)| name)
}
