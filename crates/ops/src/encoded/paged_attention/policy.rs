//! Which layout a block has at which age.

use heirloom_graph::Attributes;
use heirloom_mem::{BytesMut, DType, Ledger, Shape};
use heirloom_runtime::BuildError;
use heirloom_types::{Affine, Codec, EncodedValue, Layout, StructLayout, TensorType};
use std::sync::Arc;

use crate::attributes::unsupported;

/// The layout of keys or values of a block.
pub(super) enum Target {
    /// As they came.
    Exact,
    /// Affine codes, a scale for each `group` elements of a head.
    Affine { storage: DType, group: usize },
    /// Records of a format.
    Records { format: &'static heirloom_formats::Format, layout: Arc<StructLayout> },
}

pub(super) struct Policy {
    pub(super) block_size: usize,
    pub(super) keys: Vec<Target>,
    pub(super) values: Vec<Target>,
    /// Full blocks of each layout but the last, newest first.
    tiers: Vec<usize>,
    exact_first: usize,
}

impl Policy {
    pub(super) fn read(attributes: &Attributes) -> Result<Policy, BuildError> {
        let positive = |name: &str, default: i64| {
            let n = attributes.int_or(name, default)?;
            let size = usize::try_from(n).ok().filter(|&n| n > 0);
            size.ok_or_else(|| unsupported(name, n, "it is a positive number"))
        };
        let group = positive("group", 32)?;
        let keys = match attributes.opt_strings("layouts")? {
            None => vec![Target::Exact],
            Some(names) => targets("layouts", names, group)?,
        };
        let values = match attributes.opt_strings("value_layouts")? {
            None => match attributes.opt_strings("layouts")? {
                None => vec![Target::Exact],
                Some(names) => targets("layouts", names, group)?,
            },
            Some(names) => targets("value_layouts", names, group)?,
        };
        let given = attributes.opt_ints("tiers")?.unwrap_or(&[]);
        let tiers: Option<Vec<usize>> = given.iter().map(|&n| usize::try_from(n).ok()).collect();
        let tiers =
            tiers.ok_or_else(|| unsupported("tiers", format!("{given:?}"), "they are numbers of blocks"))?;
        if keys.len() != values.len() || tiers.len() + 1 != keys.len() {
            let counts =
                format!("{} layouts, {} value_layouts, {} tiers", keys.len(), values.len(), tiers.len());
            return Err(unsupported("tiers", counts, "there is a tier for each layout but the last"));
        }
        let first = attributes.int_or("exact_first", 0)?;
        let exact_first = usize::try_from(first)
            .map_err(|_| unsupported("exact_first", first, "it is a number of blocks"))?;
        Ok(Policy { block_size: positive("block_size", 128)?, keys, values, tiers, exact_first })
    }

    /// The tier of block `index` when the first `full` blocks are full; `None` where it stays exact.
    pub(super) fn tier(&self, index: usize, full: usize) -> Option<usize> {
        if index < self.exact_first || index >= full {
            return None;
        }
        let mut age = full - 1 - index;
        for (tier, &blocks) in self.tiers.iter().enumerate() {
            match age.checked_sub(blocks) {
                None => return Some(tier),
                Some(older) => age = older,
            }
        }
        Some(self.tiers.len())
    }
}

fn targets(attribute: &str, names: &[Box<[u8]>], group: usize) -> Result<Vec<Target>, BuildError> {
    let target = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        let affine = |storage| Ok(Target::Affine { storage, group });
        match &*name {
            "exact" => Ok(Target::Exact),
            "int8" => affine(DType::Int8),
            "int4" => affine(DType::Int4),
            name => {
                let unknown = || {
                    unsupported(
                        attribute,
                        name,
                        "it is `exact`, `int8`, `int4` or the name of a format of records",
                    )
                };
                let format = heirloom_formats::by_name(name).ok_or_else(unknown)?;
                let layout = StructLayout::new(format.declaration().clone()).map_err(|_| unknown())?;
                Ok(Target::Records { format, layout: Arc::new(layout) })
            }
        }
    };
    names.iter().map(|name| target(name)).collect()
}

/// Whether blocks of `tokens` rows of `size` elements can have the layouts.
pub(super) fn check_size(layouts: &[Target], size: usize, tokens: usize) -> Result<(), BuildError> {
    for layout in layouts {
        if let Target::Records { format, .. } = layout
            && !(size * tokens).is_multiple_of(format.elements)
        {
            let reason = format!(
                "a block of {tokens} tokens with heads of {size} elements is no whole number of records of {} elements",
                format.elements
            );
            return Err(unsupported("layouts", format.name, &reason));
        }
    }
    Ok(())
}

impl Target {
    /// `values`, the elements of a tensor of type `logical`, in this layout; `None` where it cannot hold them.
    pub(super) fn encode(
        &self,
        values: &[f32],
        logical: &TensorType,
        ledger: &Ledger,
    ) -> Option<EncodedValue> {
        let (layout, payload) = match self {
            Target::Exact => return None,
            Target::Affine { storage, group } => {
                let axis = logical.shape.len().checked_sub(1);
                let affine = Affine::fit(values, logical, *storage, axis, Some(*group)).ok()?;
                let mut codes = BytesMut::zeroed(affine.payload_bytes(values.len())?, ledger);
                affine.encode(logical, values, codes.as_mut_slice()).ok()?;
                (Layout::Affine(Arc::new(affine)), codes)
            }
            Target::Records { format, layout } => {
                if !values.len().is_multiple_of(format.elements) {
                    return None;
                }
                let mut records =
                    BytesMut::zeroed(values.len() / format.elements * format.record_bytes, ledger);
                format.encode(values, records.as_mut_slice()).ok()?;
                (Layout::Struct(layout.clone()), records)
            }
        };
        let logical = TensorType { dtype: logical.dtype, shape: Shape::from_slice(&logical.shape) };
        Some(EncodedValue { name: String::new(), layout, logical: Some(logical), payload: payload.freeze() })
    }
}
