//! Indices into a table of numbers, packed as tightly as the table allows.

use heirloom_types::{StructBuilder, bits};

/// The largest table.
pub(crate) const MAX_ENTRIES: usize = 1 << 16;

/// Indices into a table of some size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableCodes {
    /// How many indices.
    pub(crate) count: usize,
    /// Entries of the table, 2 to [`MAX_ENTRIES`].
    pub(crate) entries: usize,
}

impl TableCodes {
    /// Bits of an index.
    pub(crate) fn width(&self) -> u32 {
        usize::BITS - (self.entries - 1).leading_zeros()
    }

    /// Bits behind the last index, up to a whole byte.
    fn padding(&self) -> u64 {
        (8 - (self.count * self.width() as usize) as u64 % 8) % 8
    }

    /// Bytes of all indices.
    pub(crate) fn bytes(&self) -> usize {
        (self.count * self.width() as usize).div_ceil(8)
    }

    /// `record` with the field `codes`, and padding where it needs some.
    pub(crate) fn declare(&self, record: StructBuilder) -> StructBuilder {
        let record = record.bits("codes", &[("index", self.width())], self.count as u64);
        match self.padding() {
            0 => record,
            bits => record.bits("padding", &[("bit", 1)], bits),
        }
    }

    /// The numbers that indices `first..` of `codes` stand for.
    pub(crate) fn decode(
        &self,
        codes: &[u8],
        first: usize,
        out: &mut [f32],
        number: impl Fn(usize) -> f32,
    ) -> Result<(), String> {
        for (i, value) in out.iter_mut().enumerate() {
            let offset = (first + i) as u64 * u64::from(self.width());
            // The index lies within the bytes, whose number follows from `count`.
            let index = bits::read(codes, offset, self.width()).unwrap_or(0) as usize;
            if index >= self.entries {
                let (at, entries) = (first + i, self.entries);
                return Err(format!("element {at} has index {index}, the table {entries} entries"));
            }
            *value = number(index);
        }
        Ok(())
    }

    /// Stores indices; bits behind the last become 0.
    pub(crate) fn encode(&self, indices: impl Iterator<Item = usize>, codes: &mut [u8]) {
        codes.fill(0);
        for (i, index) in indices.enumerate().take(self.count) {
            let offset = i as u64 * u64::from(self.width());
            // As above.
            let _ = bits::write(codes, offset, self.width(), index as u64);
        }
    }
}

/// The index of the entry of `table`, which ascends, that is nearest to `x`.
pub(crate) fn nearest_entry(table: &[f32], x: f32) -> usize {
    let above = table.partition_point(|&entry| entry < x);
    if above == 0 {
        return 0;
    }
    if above == table.len() || x - table[above - 1] <= table[above] - x { above - 1 } else { above }
}
