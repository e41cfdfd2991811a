//! How many bytes a model's weights take, and where they are.

use std::collections::BTreeMap;

use heirloom_graph::{Initializer, Model};
use heirloom_mem::{Bytes, RegionKind, Storage};

/// Bytes of a model's initializers; bytes that several initializers share count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightBytes {
    /// In mapped files.
    pub mapped: u64,
    /// In memory of the process.
    pub private: u64,
}

/// Measures the root graph's initializers. No payload is read.
pub fn weight_bytes(model: &Model) -> WeightBytes {
    let mut extents: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    let mut add = |bytes: &Bytes| {
        extents.insert((bytes.address(), bytes.len()), bytes.kind() == RegionKind::Mapped);
    };
    for (_, initializer) in model.graph().initializers() {
        match initializer {
            Initializer::Tensor(tensor) => {
                if let Storage::Dense(bytes) | Storage::Strided { bytes, .. } = tensor.storage() {
                    add(bytes);
                }
            }
            Initializer::Encoded(encoded) => add(&encoded.payload),
            _ => {}
        }
    }
    let mut sum = WeightBytes::default();
    let mut end = 0;
    for ((start, len), mapped) in extents {
        let fresh = (start + len).saturating_sub(end.max(start)) as u64;
        end = end.max(start + len);
        *(if mapped { &mut sum.mapped } else { &mut sum.private }) += fresh;
    }
    sum
}
