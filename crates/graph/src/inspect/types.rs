//! Struct types in a report.

use heirloom_types::{Content, Kind, StructType};

use crate::Model;

/// A struct type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypeReport {
    /// Its identity; `None` for inline declarations.
    pub type_id: Option<u64>,
    /// Its name; may be empty.
    pub name: String,
    /// Bits of an instance; `None` where it has no fixed size.
    pub bit_size: Option<u64>,
    /// Whether the file brings a decoder.
    pub has_decoder: bool,
    /// Whether the file brings an encoder.
    pub has_encoder: bool,
    /// The fields: for a type of fixed size all leaves with their places, else the fields as declared.
    pub fields: Vec<FieldReport>,
    /// Whether fields were left out, since there are too many.
    pub is_cut: bool,
    /// How many encoded constants have the type.
    pub values: usize,
}

/// A field, or a leaf of one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FieldReport {
    /// The names that lead to it, such as `quantized.codes.index`; empty for the elements of a bare array.
    pub path: String,
    /// What it holds.
    pub content: FieldContent,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldContent {
    /// Elements within each record.
    Stored {
        /// One element: an ONNX type, or a number of bits.
        element: String,
        /// Bits of one element.
        bits: u32,
        /// Where the first element lies within the record, in bits.
        bit_offset: u64,
        /// Count and distance in bits of each dimension, outermost first; empty for a scalar.
        dims: Vec<(u64, u64)>,
    },
    /// A value of a type that bytes cannot hold.
    Dynamic {
        /// The type.
        ty: String,
    },
    /// A constant of the format.
    Constant {
        /// Its element type and shape.
        ty: String,
    },
}

/// More fields of one type are not listed: a type that others share unfolds.
const MOST_FIELDS: usize = 256;

/// The declared types.
pub(super) fn declared(model: &Model) -> Vec<TypeReport> {
    model.catalogue().iter().map(|ty| report(ty)).collect()
}

pub(super) fn report(ty: &StructType) -> TypeReport {
    let mut fields = Vec::new();
    let mut is_cut = false;
    match ty.slots(MOST_FIELDS) {
        Ok(slots) => fields.extend(slots.into_iter().map(|slot| FieldReport {
            path: slot.path,
            content: FieldContent::Stored {
                element: slot.leaf.to_string(),
                bits: slot.leaf.bit_width(),
                bit_offset: slot.bit_offset,
                dims: slot.dims.iter().map(|dim| (dim.count, dim.stride)).collect(),
            },
        })),
        Err(_) => is_cut = as_declared(ty, &mut fields),
    }
    constants(ty, "", &mut fields);
    TypeReport {
        type_id: ty.type_id().map(std::num::NonZeroU64::get),
        name: ty.name().into(),
        bit_size: ty.bit_size(),
        has_decoder: ty.decoder().is_some(),
        has_encoder: ty.encoder().is_some(),
        fields,
        is_cut,
        values: 0,
    }
}

/// The fields of a type without leaves, or with too many; whether some were left out.
fn as_declared(ty: &StructType, fields: &mut Vec<FieldReport>) -> bool {
    let mut push = |path: &str, ty: String| {
        if fields.len() < MOST_FIELDS {
            fields.push(FieldReport { path: path.into(), content: FieldContent::Dynamic { ty } });
        }
    };
    match ty.kind() {
        Kind::Structure(declared) => {
            for field in declared {
                if let Content::Type(ty) = &field.content {
                    push(&field.name, ty.to_string());
                }
            }
        }
        Kind::Array { element, count } => push("", format!("{count} × {element}")),
        Kind::BitPacking { components, count } => {
            components.iter().for_each(|it| push(&it.name, format!("{count} × {} bits", it.bit_width)));
        }
        _ => {}
    }
    fields.len() == MOST_FIELDS || ty.bit_size().is_some()
}

/// The constants of a type and of the inline types in it.
fn constants(ty: &StructType, before: &str, fields: &mut Vec<FieldReport>) {
    let dot = if before.is_empty() { "" } else { "." };
    for field in ty.fields() {
        let path = format!("{before}{dot}{}", field.name);
        match &field.content {
            Content::Constant(constant) if fields.len() < 2 * MOST_FIELDS => {
                let ty = format!("{}{:?}", constant.dtype(), constant.shape());
                fields.push(FieldReport { path, content: FieldContent::Constant { ty } });
            }
            Content::Type(heirloom_types::ValueType::Struct(inner)) if inner.type_id().is_none() => {
                constants(inner, &path, fields);
            }
            _ => {}
        }
    }
}
