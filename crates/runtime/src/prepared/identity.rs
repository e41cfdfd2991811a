//! What tells one prepared object from every other.

use heirloom_mem::{RegionId, Storage, Tensor};
use heirloom_types::{Layout, Value};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

/// The arrangement that a kernel prepares constants in. Another arrangement of the same bytes is another name, version or
/// parameter, without exception: objects outlive the program in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelLayout {
    /// The arrangement, such as `cpu.gemm.f32.panels`.
    pub name: &'static str,
    /// Raised whenever the meaning of name and parameters changes.
    pub version: u32,
    /// Tile sizes, transpositions and the like.
    pub parameters: SmallVec<[u64; 4]>,
    /// Bytes of the object.
    pub bytes: usize,
}

/// The source's bytes and layout, and the kernel's layout. Within a process, bytes are told apart by where they lie;
/// no payload is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// Codes, scales, zero points: region, offset and length.
    parts: SmallVec<[(RegionId, usize, usize); 3]>,
    /// Types, shapes and parameters, in a form that is equal where they are.
    source: Vec<u8>,
    pub(super) layout: KernelLayout,
}

impl Identity {
    /// `None` for values without dense bytes.
    pub(super) fn of(value: &Value, layout: KernelLayout) -> Option<Identity> {
        let mut parts = SmallVec::new();
        let mut source = Vec::new();
        match value {
            Value::Tensor(tensor) => add_tensor("tensor", tensor, &mut parts, &mut source)?,
            Value::Encoded(encoded) => {
                let payload = &encoded.payload;
                parts.push((payload.region_id(), payload.region_offset(), payload.len()));
                add_text(&mut source, &format!("{:?}", encoded.logical));
                match &encoded.layout {
                    Layout::Affine(affine) => {
                        let form = (affine.storage, affine.axis, affine.block_size);
                        add_text(&mut source, &format!("affine {form:?}"));
                        add_tensor("scale", &affine.scale, &mut parts, &mut source)?;
                        if let Some(zero_point) = &affine.zero_point {
                            add_tensor("zero point", zero_point, &mut parts, &mut source)?;
                        }
                    }
                    Layout::Struct(layout) => {
                        add_text(&mut source, "struct");
                        source.extend_from_slice(&layout.declaration.to_proto().to_canonical_bytes());
                    }
                }
            }
            _ => return None,
        }
        Some(Identity { parts, source, layout })
    }

    /// The same in all processes for equal bytes: a digest of the source's contents and all layouts.
    pub(super) fn digest(&self, value: &Value) -> [u8; 32] {
        let mut hash = Sha256::new();
        let number = |n: u64, hash: &mut Sha256| hash.update(n.to_le_bytes());
        number(self.layout.name.len() as u64, &mut hash);
        hash.update(self.layout.name);
        number(self.layout.version.into(), &mut hash);
        number(self.layout.parameters.len() as u64, &mut hash);
        self.layout.parameters.iter().for_each(|p| number(*p, &mut hash));
        number(self.layout.bytes as u64, &mut hash);
        number(self.source.len() as u64, &mut hash);
        hash.update(&self.source);
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        match value {
            Value::Tensor(tensor) => part(tensor.dense_bytes().unwrap_or(&[])),
            Value::Encoded(encoded) => {
                part(&encoded.payload);
                if let Layout::Affine(affine) = &encoded.layout {
                    part(affine.scale.dense_bytes().unwrap_or(&[]));
                    if let Some(zero_point) = &affine.zero_point {
                        part(zero_point.dense_bytes().unwrap_or(&[]));
                    }
                }
            }
            _ => {}
        }
        hash.finalize().into()
    }
}

fn add_text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u64).to_le_bytes());
    to.extend(text.bytes());
}

fn add_tensor(
    what: &str,
    tensor: &Tensor,
    parts: &mut SmallVec<[(RegionId, usize, usize); 3]>,
    source: &mut Vec<u8>,
) -> Option<()> {
    let Storage::Dense(bytes) = tensor.storage() else { return None };
    parts.push((bytes.region_id(), bytes.region_offset(), bytes.len()));
    add_text(source, &format!("{what} {:?} {:?}", tensor.dtype(), tensor.shape()));
    Some(())
}
