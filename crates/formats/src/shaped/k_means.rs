//! A codebook of the tensor's own, found by k-means: the value is one record, all indices and then the codebook;
//! `codebook[index]`.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::DType::{Float, Int64};
use heirloom_types::{Codec, CodecError, StructBuilder, StructType};

use super::{Family, Shaped, confirm, identity};
use crate::body::{Attr, Body, Val};
use crate::error::FormatError;
use crate::shape_of::{leaves, packed};
use crate::table_codes::{MAX_ENTRIES, TableCodes, nearest_entry};

/// The format for one size of tensor and codebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KMeans {
    codes: TableCodes,
}

/// How often the encoder moves the entries to the means of the values nearest to them, at most.
const ROUNDS: usize = 30;

pub(super) static FAMILY: Family = Family {
    name: "k_means",
    recognize,
    examples: || {
        let sizes = [(64, 16), (37, 5), (128, 256), (600, 300)];
        let example =
            |(elements, entries)| Arc::new(KMeans::new(elements, entries).expect("possible sizes")) as _;
        sizes.into_iter().map(example).collect()
    },
};

fn recognize(ty: &StructType) -> Option<Arc<dyn Codec>> {
    let (_, elements) = packed(ty, &["codes", "index"])?;
    let (_, entries) = leaves(ty, &["codebook"])?;
    confirm(KMeans::new(*elements.first()?, *entries.first()?).ok()?, ty)
}

impl KMeans {
    /// The format for `elements` elements and a codebook of `entries` entries.
    ///
    /// # Errors
    /// When there are no elements, or fewer than 2 or more than 65,536 entries.
    pub fn new(elements: usize, entries: usize) -> Result<KMeans, FormatError> {
        let refuse = |parameter, value: usize, expected| {
            let value = value.to_string();
            Err(FormatError::Parameter { format: FAMILY.name, parameter, value, expected })
        };
        if elements == 0 || elements >= 1 << 42 {
            return refuse("elements", elements, "1 to 2^42 - 1");
        }
        if !(2..=MAX_ENTRIES).contains(&entries) {
            return refuse("entries", entries, "2 to 65,536");
        }
        Ok(KMeans { codes: TableCodes { count: elements, entries } })
    }

    fn decode_part(&self, record: &[u8], first: usize, out: &mut [f32]) -> Result<(), String> {
        let (codes, codebook) = record.split_at(self.codes.bytes());
        let (codebook, _) = codebook.as_chunks::<4>();
        self.codes.decode(codes, first, out, |index| f32::from_le_bytes(codebook[index]))
    }

    fn encode_record(&self, values: &[f32], record: &mut [u8]) {
        let codebook = cluster(values, self.codes.entries);
        let (codes, bytes) = record.split_at_mut(self.codes.bytes());
        self.codes.encode(values.iter().map(|&x| nearest_entry(&codebook, x)), codes);
        for (bytes, entry) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(codebook) {
            *bytes = entry.to_le_bytes();
        }
    }
}

/// Ascending means of `entries` clusters of `values`: Lloyd's algorithm in one dimension, from quantiles.
fn cluster(values: &[f32], entries: usize) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.into();
    sorted.sort_by(f32::total_cmp);
    let quantile = |i: usize| sorted[((2 * i + 1) * sorted.len() / (2 * entries)).min(sorted.len() - 1)];
    let mut means: Vec<f32> = (0..entries).map(quantile).collect();
    for _ in 0..ROUNDS {
        let mut sums = vec![(0f64, 0u32); entries];
        for &x in &sorted {
            let (sum, count) = &mut sums[nearest_entry(&means, x)];
            *sum += f64::from(x);
            *count += 1;
        }
        let mut moved = false;
        for (mean, (sum, count)) in means.iter_mut().zip(sums).filter(|(_, (_, count))| *count > 0) {
            let next = (sum / f64::from(count)) as f32;
            moved |= next != *mean;
            *mean = next;
        }
        // A mean of an empty cluster stays where it was, between neighbours that moved.
        means.sort_by(f32::total_cmp);
        if !moved {
            break;
        }
    }
    means
}

impl Codec for KMeans {
    fn elements(&self) -> usize {
        self.codes.count
    }

    fn record_bytes(&self) -> usize {
        self.codes.bytes() + 4 * self.codes.entries
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

impl Shaped for KMeans {
    fn name(&self) -> &'static str {
        FAMILY.name
    }

    fn declare(&self, record: StructBuilder) -> StructBuilder {
        self.codes.declare(record).tensor("codebook", Float, &[self.codes.entries])
    }

    fn decoder(&self, body: &mut Body) -> Val {
        let codes = body.field(&["codes", "index"]);
        let codes = body.cast(&codes, Int64);
        let codes = body.reshape(&codes, &[0, self.codes.count as i64, 1]);
        let codebook = body.field(&["codebook"]);
        body.op("GatherND", &[&codebook, &codes], &[("batch_dims", Attr::Int(1))])
    }

    fn type_id(&self) -> Option<NonZeroU64> {
        identity(2, (self.codes.count as u64) << 17 | self.codes.entries as u64)
    }
}
