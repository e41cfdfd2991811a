//! A shared codebook: indices into a table that is a constant of the type, and a scale for each record, or none;
//! `scale * table[index]`.
//!
//! The table is of any size and in any order. It belongs to the type: another table is another type.

use std::sync::Arc;

use heirloom_mem::DType::Float;
use heirloom_mem::Tensor;
use heirloom_types::{Codec, CodecError, StructBuilder, StructType};

use super::{Family, Shaped, confirm};
use crate::body::{Body, Val};
use crate::error::FormatError;
use crate::fit::{best_scale, extreme, inverse};
use crate::shape_of::{constant, leaves, packed};
use crate::table_codes::{MAX_ENTRIES, TableCodes, nearest_entry};

/// The format for one table and block size.
#[derive(Clone, Debug)]
pub struct Codebook {
    codes: TableCodes,
    table: Tensor,
    scaled: bool,
    /// The table's entries in ascending order, each with its index.
    ascending: Vec<(f32, usize)>,
}

pub(super) static FAMILY: Family = Family {
    name: "codebook",
    recognize,
    examples: || {
        // Cubes of evenly spaced numbers, dense around 0, the last first.
        let entry = |i: i32, count: i32| (1.0 - 2.0 * i as f32 / (count - 1) as f32).powi(3);
        let table = |count| (0..count).map(|i| entry(i, count)).collect::<Vec<f32>>();
        let parameters =
            [(32, vec![-1.0, -0.25, 0.25, 1.0], true), (10, table(11), false), (16, table(300), true)];
        let example = |(block, table, scaled): (usize, Vec<f32>, bool)| {
            Arc::new(Codebook::new(block, &table, scaled).expect("a finite table")) as _
        };
        parameters.into_iter().map(example).collect()
    },
};

fn recognize(ty: &StructType) -> Option<Arc<dyn Codec>> {
    let (_, dims) = packed(ty, &["codes", "index"])?;
    let [block] = dims[..] else { return None };
    let table = constant(ty, "table")?.as_slice::<f32>().ok()?;
    confirm(Codebook::new(block, table, leaves(ty, &["scale"]).is_some()).ok()?, ty)
}

impl Codebook {
    /// The format whose records hold `block` indices into `table`, and a scale if `scaled`.
    ///
    /// # Errors
    /// When `block` is 0, or the table has fewer than 2 or more than 65,536 entries, or one that is no number.
    pub fn new(block: usize, table: &[f32], scaled: bool) -> Result<Codebook, FormatError> {
        let refuse = |parameter, value, expected| {
            Err(FormatError::Parameter { format: FAMILY.name, parameter, value, expected })
        };
        if block == 0 || block > 1 << 32 {
            return refuse("block", block.to_string(), "1 to 2^32");
        }
        if !(2..=MAX_ENTRIES).contains(&table.len()) {
            return refuse("table", format!("of {} entries", table.len()), "2 to 65,536 entries");
        }
        if let Some(entry) = table.iter().find(|entry| !entry.is_finite()) {
            return refuse("table", format!("one with {entry}"), "finite");
        }
        let mut ascending: Vec<(f32, usize)> = table.iter().copied().zip(0..).collect();
        ascending.sort_by(|a, b| a.0.total_cmp(&b.0));
        let codes = TableCodes { count: block, entries: table.len() };
        let table = Tensor::from_vec(&[table.len()], table.into()).expect("as many entries");
        Ok(Codebook { codes, table, scaled, ascending })
    }

    fn table(&self) -> &[f32] {
        self.table.as_slice().expect("made from f32")
    }

    fn decode_part(&self, record: &[u8], first: usize, out: &mut [f32]) -> Result<(), String> {
        let (codes, scale) = record.split_at(self.codes.bytes());
        let table = self.table();
        match scale.first_chunk() {
            Some(scale) => {
                let scale = f32::from_le_bytes(*scale);
                self.codes.decode(codes, first, out, |index| scale * table[index])
            }
            None => self.codes.decode(codes, first, out, |index| table[index]),
        }
    }

    fn encode_record(&self, values: &[f32], record: &mut [u8]) {
        let entries: Vec<f32> = self.ascending.iter().map(|entry| entry.0).collect();
        let (codes, scale_bytes) = record.split_at_mut(self.codes.bytes());
        let mut scale = 1.0;
        if self.scaled {
            let widest = extreme(&entries).abs();
            let start = extreme(values).abs() * inverse(widest);
            scale = if start == 0.0 {
                0.0
            } else {
                best_scale(values, start, |x| entries[nearest_entry(&entries, x)])
            };
            scale_bytes.iter_mut().zip(scale.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        let inverse = inverse(scale);
        let index = |x: &f32| self.ascending[nearest_entry(&entries, x * inverse)].1;
        self.codes.encode(values.iter().map(index), codes);
    }
}

impl Codec for Codebook {
    fn elements(&self) -> usize {
        self.codes.count
    }

    fn record_bytes(&self) -> usize {
        self.codes.bytes() + if self.scaled { 4 } else { 0 }
    }

    fn decode(&self, records: &[u8], out: &mut [f32]) -> Result<(), CodecError> {
        super::decode(self, records, out, &|record, first, out| self.decode_part(record, first, out))
    }

    fn encode(&self, values: &[f32], records: &mut [u8]) -> Result<(), CodecError> {
        super::encode(self, values, records, &|values, record| self.encode_record(values, record))
    }

    fn decode_range(&self, records: &[u8], first: usize, out: &mut [f32]) -> Result<(), CodecError> {
        let part = |record: &[u8], first, out: &mut [f32]| self.decode_part(record, first, out);
        super::decode_range(self, records, first, out, &part)
    }
}

impl Shaped for Codebook {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn declare(&self, record: StructBuilder) -> StructBuilder {
        let record = self.codes.declare(record);
        let record = if self.scaled { record.field("scale", Float) } else { record };
        record.constant("table", self.table.clone())
    }

    fn decoder(&self, body: &mut Body) -> Val {
        let codes = body.field(&["codes", "index"]);
        let numbers = body.lookup(&["table"], &codes);
        if !self.scaled {
            return numbers;
        }
        let scale = body.field(&["scale"]);
        let scale = body.column(&scale);
        body.mul(&scale, &numbers)
    }
}
