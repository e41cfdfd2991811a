//! What every declaration must keep to, whether it comes from a file or is written in Rust.

use heirloom_mem::Tensor;
use rustc_hash::FxHashSet;

use crate::struct_type::{Constant, Content, Kind};
use crate::{Fault, TensorError, TypeError, ValueType};

/// The names seen so far in one structure or packing.
#[derive(Default)]
pub(crate) struct Names<'a>(FxHashSet<&'a str>);

impl<'a> Names<'a> {
    /// Refuses an empty name and one that was there before.
    pub(crate) fn take(&mut self, what: &'static str, name: &'a str) -> Result<(), TypeError> {
        if name.is_empty() {
            return Err(TypeError::EmptyName { what });
        }
        if !self.0.insert(name) {
            return Err(TypeError::DuplicateName { what, name: name.into() });
        }
        Ok(())
    }
}

pub(crate) fn bit_width(name: &str, width: u32) -> Result<(), TypeError> {
    if (1..=64).contains(&width) { Ok(()) } else { Err(TypeError::BitWidth { name: name.into(), width }) }
}

pub(crate) fn not_empty(what: &'static str, element: &'static str, count: u64) -> Result<(), TypeError> {
    if count == 0 { Err(TypeError::Empty { what, element }) } else { Ok(()) }
}

/// Whether the category stands in `ty` where no sequence or map is around it.
pub(crate) fn category_place(ty: &ValueType) -> Result<(), TypeError> {
    match ty {
        ValueType::AnyStruct => Err(TypeError::CategoryHere),
        ValueType::Optional(element) => category_place(element),
        _ => Ok(()),
    }
}

/// Unused high bits of the last byte of a constant or a payload of `count` elements of `dtype`.
pub(crate) fn unused_bits(tensor: &Tensor) -> Result<(), TensorError> {
    let dtype = tensor.dtype();
    let bits = dtype.bit_width().unwrap_or(8) as usize;
    // Counted modulo 8, so that nothing overflows.
    let used = (tensor.len() % 8) * bits % 8;
    match tensor.dense_bytes().and_then(<[u8]>::last) {
        Some(&byte) if used != 0 && byte >> used != 0 => Err(TensorError::UnusedBits { dtype, byte }),
        _ => Ok(()),
    }
}

/// The first fault of a declaration whose nested types are complete, and the field it lies in.
pub(crate) fn check(kind: &Kind) -> Result<(), Fault> {
    let mut names = Names::default();
    let at = |path: &str| {
        let path = path.to_owned();
        move |error| Fault { path, error }
    };
    match kind {
        Kind::Array { element, count } => {
            not_empty("array", "element", *count)?;
            category_place(element)?;
        }
        Kind::Structure(fields) => {
            not_empty("structure", "field", fields.len() as u64)?;
            for field in fields {
                names.take("field", &field.name).map_err(at(&field.name))?;
                match &field.content {
                    Content::Type(ty) => category_place(ty).map_err(at(&field.name))?,
                    Content::Constant(Constant::Strings(_)) => {}
                    Content::Constant(Constant::Tensor(tensor)) => {
                        let dense = tensor.dense_bytes().is_some();
                        let result = if dense { unused_bits(tensor) } else { Err(TensorError::Gaps) };
                        let constant = |error| TypeError::Constant {
                            name: (*field.name).into(),
                            error: Box::new(error),
                        };
                        result.map_err(constant).map_err(at(&field.name))?;
                    }
                }
            }
        }
        Kind::BitPacking { components, count } => {
            not_empty("bit packing", "component", components.len() as u64)?;
            not_empty("bit packing", "group", *count)?;
            for component in components {
                names.take("component", &component.name).map_err(at(&component.name))?;
                bit_width(&component.name, component.bit_width).map_err(at(&component.name))?;
            }
        }
    }
    Ok(())
}
