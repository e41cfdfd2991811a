//! Reads the parameters of a family out of a declaration.

use heirloom_mem::Tensor;
use heirloom_types::{Leaf, Located, StructType};

/// Where the leaves of a field are: what each is, and the dimensions.
pub(crate) fn leaves(ty: &StructType, path: &[&str]) -> Option<(Leaf, Vec<usize>)> {
    match ty.locate_names(path).ok()? {
        Located::Slot(slot) => {
            let dims = slot.dims.iter().map(|dim| usize::try_from(dim.count).ok()).collect::<Option<_>>()?;
            Some((slot.leaf, dims))
        }
        Located::Constant(_) => None,
    }
}

/// The width and the number of a bit packing of one component.
pub(crate) fn packed(ty: &StructType, path: &[&str]) -> Option<(u32, Vec<usize>)> {
    match leaves(ty, path)? {
        (Leaf::Bits(width), dims) => Some((width, dims)),
        _ => None,
    }
}

/// A constant field.
pub(crate) fn constant<'a>(ty: &'a StructType, name: &str) -> Option<&'a Tensor> {
    ty.constant(name)?.as_tensor()
}
