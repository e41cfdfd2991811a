//! Whether values of one declared type can be values of another.

use heirloom_types::{Content, Dim, Kind, StructType, TensorSpec, ValueType};

/// Why no value can ever be of both types; `None` where some value can. Symbols and unknown extents can be any
/// number, a category any struct; what a value really is, is checked when it is there.
pub(crate) fn difference(a: &ValueType, b: &ValueType) -> Option<String> {
    let mut place = String::new();
    types(a, b, &mut place).map(|what| if place.is_empty() { what } else { format!("`{place}`: {what}") })
}

/// Compares two types; where they differ, `place` is the way there.
fn types(a: &ValueType, b: &ValueType, place: &mut String) -> Option<String> {
    match (a, b) {
        (ValueType::Tensor(a), ValueType::Tensor(b)) | (ValueType::Sparse(a), ValueType::Sparse(b)) => {
            tensors(a, b)
        }
        (ValueType::AnyStruct, ValueType::AnyStruct | ValueType::Struct(_))
        | (ValueType::Struct(_), ValueType::AnyStruct) => None,
        (ValueType::Struct(a), ValueType::Struct(b)) => structs(a, b, place),
        (ValueType::Sequence(a), ValueType::Sequence(b)) => within(place, "[]", |place| types(a, b, place)),
        (ValueType::Optional(a), ValueType::Optional(b)) => types(a, b, place),
        (ValueType::Map { key: ka, value: va }, ValueType::Map { key: kb, value: vb }) => {
            if ka != kb {
                return Some(format!("keys of {ka} and of {kb}"));
            }
            within(place, "[]", |place| types(va, vb, place))
        }
        (ValueType::Opaque { domain: da, name: na }, ValueType::Opaque { domain: db, name: nb })
            if (da, na) == (db, nb) =>
        {
            None
        }
        _ => Some(format!("{a} and {b}")),
    }
}

/// Extends `place` where `compare` finds a difference.
fn within(
    place: &mut String,
    step: &str,
    compare: impl FnOnce(&mut String) -> Option<String>,
) -> Option<String> {
    let before = place.len();
    if !(step.starts_with('[') || place.is_empty()) {
        place.push('.');
    }
    place.push_str(step);
    let found = compare(place);
    if found.is_none() {
        place.truncate(before);
    }
    found
}

fn tensors(a: &TensorSpec, b: &TensorSpec) -> Option<String> {
    if a.dtype != b.dtype {
        return Some(format!("elements of {} and of {}", a.dtype, b.dtype));
    }
    let (Some(a), Some(b)) = (&a.dims, &b.dims) else { return None };
    if a.len() != b.len() {
        return Some(format!("rank {} and rank {}", a.len(), b.len()));
    }
    let mut axes = a.iter().zip(b).enumerate();
    axes.find_map(|(axis, (a, b))| match (a, b) {
        (Dim::Known(a), Dim::Known(b)) if a != b => Some(format!("axis {axis} has {a} and {b} elements")),
        _ => None,
    })
}

/// Declared types are told apart by identity, inline ones by what they consist of.
fn structs(a: &StructType, b: &StructType, place: &mut String) -> Option<String> {
    match (a.type_id(), b.type_id()) {
        (Some(x), Some(y)) if x == y => return None,
        (None, None) => {}
        _ => return Some(format!("{a} and {b}")),
    }
    match (a.kind(), b.kind()) {
        (Kind::Array { element: x, count: n }, Kind::Array { element: y, count: m }) => {
            if n != m {
                return Some(format!("{n} and {m} elements"));
            }
            within(place, "[]", |place| types(x, y, place))
        }
        (Kind::BitPacking { .. }, Kind::BitPacking { .. }) => {
            a.difference(b).map(|difference| difference.to_string())
        }
        (Kind::Structure(x), Kind::Structure(y)) => {
            let names = |fields: &[heirloom_types::Field]| {
                fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>()
            };
            if names(x) != names(y) {
                return Some(format!("fields {:?} and {:?}", names(x), names(y)));
            }
            x.iter()
                .zip(y)
                .find_map(|(x, y)| match (&x.content, &y.content) {
                    (Content::Type(a), Content::Type(b)) => {
                        within(place, &x.name, |place| types(a, b, place))
                    }
                    (Content::Constant(_), Content::Constant(_)) => None,
                    _ => Some(format!("field `{}` is a constant in one of them", x.name)),
                })
                .or_else(|| constants(a, b))
        }
        _ => Some(format!("{a} and {b}")),
    }
}

/// The first constant field that differs.
fn constants(a: &StructType, b: &StructType) -> Option<String> {
    let constant = |ty: &StructType, name: &str| ty.constant(name).cloned();
    a.fields().iter().find_map(|field| {
        let (x, y) = (constant(a, &field.name)?, constant(b, &field.name)?);
        let differs = match (&x, &y) {
            (heirloom_types::Constant::Tensor(x), heirloom_types::Constant::Tensor(y)) => {
                x.dtype() != y.dtype() || x.shape() != y.shape() || x.dense_bytes() != y.dense_bytes()
            }
            (heirloom_types::Constant::Strings(x), heirloom_types::Constant::Strings(y)) => x != y,
            _ => true,
        };
        differs.then(|| format!("the constants `{}` differ", field.name))
    })
}
