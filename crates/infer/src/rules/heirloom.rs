//! Our own operators.

use heirloom_graph::AttrValue;
use heirloom_mem::DType;
use heirloom_types::{Content, Located, StructType};

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Fact, Type};

pub(super) const RULES: &[Rule] = &[("Decode", decode), ("Field", field)];

/// The tensor that an encoded value stands for.
fn decode(cx: &mut Cx<'_>) -> Outcome {
    let ty = cx.ty(0)?.clone();
    if ty.as_tensor().is_none() {
        return Err(Stop::Unknown);
    }
    cx.set_fact(0, Fact::of(ty));
    Ok(())
}

/// One field: of records as a tensor, of a struct value as it is.
fn field(cx: &mut Cx<'_>) -> Outcome {
    let path: Vec<Box<str>> = match cx.attr("path") {
        None => Vec::new(),
        Some(AttrValue::Strings(names)) => {
            let names = names.iter().map(|name| std::str::from_utf8(name).map(Box::from));
            names.collect::<Result<_, _>>().map_err(|_| Stop::Unknown)?
        }
        Some(_) => return Err(Stop::Unknown),
    };
    let fact = cx.fact(0)?;
    if let Some(physical) = &fact.physical {
        let Some(layout) = physical.value.layout.as_struct() else {
            return Err(cx.refuse(0, "affine codes have no fields".into()));
        };
        let fact = column(cx, &layout.declaration, &path, physical.records)?;
        cx.set_fact(0, fact);
        return Ok(());
    }
    let Some(Type::Struct(ty)) = &fact.ty else { return Err(Stop::Unknown) };
    let mut ty = Type::Struct(ty.clone());
    for name in &path {
        let Type::Struct(declaration) = &ty else {
            return Err(cx.refuse(0, format!("`{name}` is asked of {ty}, which has no fields")));
        };
        let Some(field) = declaration.field(name) else {
            return Err(cx.refuse(0, format!("there is no field `{name}`")));
        };
        ty = match &field.content {
            Content::Type(inner) => Type::from(inner),
            Content::Constant(constant) => {
                let dims = std::iter::once(&1).chain(constant.shape()).map(|&it| Some(Expr::from(it)));
                Type::tensor(constant.dtype(), Some(dims.collect()))
            }
        };
    }
    cx.set_fact(0, Fact::of(ty));
    Ok(())
}

/// `[records, *dimensions]`, codes of less than a byte widened.
fn column(cx: &Cx<'_>, ty: &StructType, path: &[Box<str>], records: Option<usize>) -> Result<Fact, Stop> {
    let located = ty.locate_names(path).map_err(|error| cx.refuse(0, error.to_string()))?;
    Ok(match located {
        Located::Slot(slot) => {
            let extents = slot.dims.iter().map(|dim| i64::try_from(dim.count).ok().map(Expr::number));
            let dims = std::iter::once(records.map(Expr::from)).chain(extents).collect();
            Fact::tensor(widened(slot.leaf), Some(dims))
        }
        Located::Constant(constant) => {
            let dims = std::iter::once(&1).chain(constant.shape()).map(|&it| Some(Expr::from(it)));
            Fact::tensor(constant.dtype(), Some(dims.collect()))
        }
    })
}

fn widened(leaf: heirloom_types::Leaf) -> DType {
    match leaf {
        heirloom_types::Leaf::Scalar(DType::Int4 | DType::Int2) => DType::Int8,
        heirloom_types::Leaf::Scalar(DType::Uint4 | DType::Uint2) => DType::Uint8,
        heirloom_types::Leaf::Scalar(dtype) => dtype,
        heirloom_types::Leaf::Bits(0..=8) => DType::Uint8,
        heirloom_types::Leaf::Bits(9..=16) => DType::Uint16,
        heirloom_types::Leaf::Bits(17..=32) => DType::Uint32,
        heirloom_types::Leaf::Bits(_) => DType::Uint64,
    }
}
