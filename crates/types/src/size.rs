//! What follows from a declaration, computed once when it is made: size, depth, strings.
//!
//! Facts of a type come from the facts of the types that it names, so that a type that is reached on many paths
//! costs no more than one that is reached on one.

use std::sync::Arc;

use heirloom_mem::DType;

use crate::struct_type::{Content, Kind, MAX_DEPTH};
use crate::{TensorSpec, TypeError, ValueType};

/// What was computed about a struct type.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) size: Size,
    pub(crate) strings: bool,
    pub(crate) depth: u32,
}

/// Bits of an instance.
#[derive(Clone, Debug)]
pub(crate) enum Size {
    Fixed(u64),
    Dynamic(Arc<NotFixed>),
}

/// The first part of a type that has no fixed size.
#[derive(Debug)]
pub(crate) struct NotFixed {
    pub(crate) path: String,
    pub(crate) what: String,
}

impl Size {
    fn dynamic(what: impl Into<String>) -> Size {
        Size::Dynamic(Arc::new(NotFixed { path: String::new(), what: what.into() }))
    }

    /// The same seen from the field or element around it.
    fn within(self, name: &str) -> Size {
        match self {
            Size::Dynamic(inner) => {
                let dot = if inner.path.is_empty() || inner.path.starts_with('[') { "" } else { "." };
                let path = format!("{name}{dot}{}", inner.path);
                Size::Dynamic(Arc::new(NotFixed { path, what: inner.what.clone() }))
            }
            fixed => fixed,
        }
    }
}

fn overflow(path: &str) -> TypeError {
    TypeError::SizeOverflow { path: path.into() }
}

/// The facts of a declaration whose nested types are complete.
pub(crate) fn facts_of(kind: &Kind) -> Result<Facts, TypeError> {
    let mut facts = Facts { size: Size::Fixed(0), strings: false, depth: 0 };
    match kind {
        Kind::Array { element, count } => {
            facts = facts_of_value(element, "[]")?;
            facts.size = match facts.size {
                Size::Fixed(bits) => Size::Fixed(bits.checked_mul(*count).ok_or_else(|| overflow("[]"))?),
                dynamic => dynamic.within("[]"),
            };
        }
        Kind::BitPacking { components, count } => {
            let group = components.iter().try_fold(0u64, |sum, c| sum.checked_add(u64::from(c.bit_width)));
            let bits = group.and_then(|group| group.checked_mul(*count)).ok_or_else(|| overflow("[]"))?;
            facts.size = Size::Fixed(bits);
        }
        Kind::Structure(fields) => {
            for field in fields {
                let ty = match &field.content {
                    Content::Constant(constant) => {
                        facts.strings |= constant.dtype() == DType::String;
                        continue;
                    }
                    Content::Type(ty) => ty,
                };
                let of = facts_of_value(ty, &field.name)?;
                facts.strings |= of.strings;
                facts.depth = facts.depth.max(of.depth);
                facts.size = match (facts.size, of.size) {
                    (Size::Fixed(sum), Size::Fixed(bits)) => {
                        Size::Fixed(sum.checked_add(bits).ok_or_else(|| overflow(&field.name))?)
                    }
                    (Size::Fixed(_), dynamic) => dynamic.within(&field.name),
                    (dynamic, _) => dynamic,
                };
            }
        }
    }
    facts.depth += 1;
    if facts.depth > MAX_DEPTH {
        return Err(TypeError::TooDeep { limit: MAX_DEPTH });
    }
    Ok(facts)
}

fn facts_of_value(ty: &ValueType, path: &str) -> Result<Facts, TypeError> {
    let around = |element: &ValueType| {
        let mut facts = facts_of_value(element, path)?;
        facts.size = Size::dynamic(ty.kind());
        facts.depth += 1;
        if facts.depth > MAX_DEPTH { Err(TypeError::TooDeep { limit: MAX_DEPTH }) } else { Ok(facts) }
    };
    Ok(match ty {
        ValueType::Struct(ty) => ty.facts.clone(),
        ValueType::Tensor(spec) => {
            Facts { size: tensor_bits(spec, path)?, strings: spec.dtype == DType::String, depth: 0 }
        }
        ValueType::Sparse(spec) => {
            Facts { size: Size::dynamic(ty.kind()), strings: spec.dtype == DType::String, depth: 0 }
        }
        ValueType::AnyStruct => Facts { size: Size::dynamic("any struct"), strings: false, depth: 0 },
        ValueType::Opaque { .. } => Facts { size: Size::dynamic(ty.kind()), strings: false, depth: 0 },
        ValueType::Sequence(element) | ValueType::Optional(element) => around(element)?,
        ValueType::Map { key, value } => {
            let mut facts = around(value)?;
            facts.strings |= *key == DType::String;
            facts
        }
    })
}

fn tensor_bits(spec: &TensorSpec, path: &str) -> Result<Size, TypeError> {
    let Some(width) = spec.dtype.bit_width() else { return Ok(Size::dynamic("STRING tensor")) };
    let Some(shape) = spec.shape() else { return Ok(Size::dynamic(format!("tensor {spec}"))) };
    if shape.contains(&0) {
        return Ok(Size::Fixed(0));
    }
    let wide = |n: usize| u64::try_from(n).ok();
    let bits = shape.iter().try_fold(u64::from(width), |bits, &d| bits.checked_mul(wide(d)?));
    bits.map(Size::Fixed).ok_or_else(|| overflow(path))
}
