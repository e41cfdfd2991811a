//! Sequences and optionals.

use std::sync::Arc;

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Fact, TensorFact, Type};

pub(super) const RULES: &[Rule] = &[
    ("ConcatFromSequence", concat),
    ("Optional", optional),
    ("OptionalGetElement", get_element),
    ("OptionalHasElement", has_element),
    ("SequenceAt", at),
    ("SequenceConstruct", construct),
    ("SequenceEmpty", empty),
    ("SequenceErase", erase),
    ("SequenceInsert", insert),
    ("SequenceLength", length),
    ("SplitToSequence", split),
];

/// The type that values of both types have: extents that differ are unknown. `None` where there is none.
pub(crate) fn common(a: &Type, b: &Type) -> Option<Type> {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) if a.dtype == b.dtype => {
            let dims = match (&a.dims, &b.dims) {
                (Some(a), Some(b)) if a.len() == b.len() => {
                    Some(a.iter().zip(b).map(|(a, b)| a.clone().filter(|_| a == b)).collect())
                }
                _ => None,
            };
            Some(Type::tensor(a.dtype, dims))
        }
        (Type::Sequence(a), Type::Sequence(b)) => Some(Type::Sequence(common_element(a, b))),
        (Type::Optional(a), Type::Optional(b)) => Some(Type::Optional(common_element(a, b))),
        (Type::Optional(Some(inner)), other) | (other, Type::Optional(Some(inner))) => {
            Some(Type::Optional(Some(Arc::new(common(inner, other)?))))
        }
        (a, b) => (a == b).then(|| a.clone()),
    }
}

fn common_element(a: &Option<Arc<Type>>, b: &Option<Arc<Type>>) -> Option<Arc<Type>> {
    match (a, b) {
        (Some(a), Some(b)) => common(a, b).map(Arc::new),
        // An empty sequence has no element to tell.
        (one, None) | (None, one) => one.clone(),
    }
}

fn element(cx: &Cx<'_>) -> Result<Arc<Type>, Stop> {
    match cx.ty(0)? {
        Type::Sequence(Some(element)) => Ok(element.clone()),
        Type::Sequence(None) => Err(Stop::Unknown),
        Type::Optional(Some(inner)) => match &**inner {
            Type::Sequence(Some(element)) => Ok(element.clone()),
            _ => Err(Stop::Unknown),
        },
        _ => Err(cx.refuse(0, "the operator takes a sequence".into())),
    }
}

fn set(cx: &mut Cx<'_>, ty: Type) -> Outcome {
    cx.set_fact(0, Fact::of(ty));
    Ok(())
}

fn construct(cx: &mut Cx<'_>) -> Outcome {
    let mut all = cx.ty(0)?.clone();
    for input in 1..cx.input_count() {
        all = common(&all, cx.ty(input)?).ok_or(Stop::Unknown)?;
    }
    set(cx, Type::Sequence(Some(Arc::new(all))))
}

/// The elements' shape is anything.
fn empty(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("dtype").unwrap_or(DType::Float);
    set(cx, Type::Sequence(Some(Arc::new(Type::tensor(dtype, None)))))
}

fn at(cx: &mut Cx<'_>) -> Outcome {
    let element = element(cx)?;
    set(cx, (*element).clone())
}

fn erase(cx: &mut Cx<'_>) -> Outcome {
    let ty = cx.ty(0)?.clone();
    set(cx, ty)
}

fn insert(cx: &mut Cx<'_>) -> Outcome {
    let (old, new) = (element(cx)?, cx.ty(1)?);
    let all = match (&*old, new) {
        // What is inserted into an empty sequence tells more than its declaration.
        (Type::Tensor(TensorFact { dims: None, dtype }), Type::Tensor(new)) => {
            Some(Type::tensor(*dtype, None)).filter(|_| new.dtype == *dtype)
        }
        (old, new) => common(old, new),
    };
    set(cx, Type::Sequence(all.map(Arc::new)))
}

fn length(cx: &mut Cx<'_>) -> Outcome {
    cx.set(0, DType::Int64, Some(Vec::new()));
    Ok(())
}

fn split(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = match dims {
        Some(mut dims) => {
            let axis = cx.axis(cx.int("axis", 0), dims.len())?;
            let sizes = cx.ints(1);
            let is_scalar = cx.dims(1).is_ok_and(<[Dim]>::is_empty);
            if !cx.has(1) && cx.int("keepdims", 1) == 0 {
                dims.remove(axis);
            } else {
                dims[axis] = match sizes {
                    None if !cx.has(1) => Some(Expr::number(1)),
                    // Equal sizes; of a scalar the last may be smaller.
                    Some(sizes) if !is_scalar => sizes
                        .first()
                        .cloned()
                        .flatten()
                        .filter(|first| sizes.iter().all(|size| size.as_ref() == Some(first))),
                    Some(sizes) => sizes.first().cloned().flatten().filter(|size| {
                        dims[axis].as_ref().is_some_and(|extent| extent.exact_quotient(size).is_some())
                    }),
                    None => None,
                };
            }
            Some(dims)
        }
        None => None,
    };
    set(cx, Type::Sequence(Some(Arc::new(Type::tensor(dtype, dims)))))
}

fn concat(cx: &mut Cx<'_>) -> Outcome {
    let element = element(cx)?;
    let TensorFact { dtype, dims } = element.as_tensor().ok_or(Stop::Unknown)?.clone();
    let axis = cx.opt_int("axis").ok_or(Stop::Unknown)?;
    let dims = match dims {
        Some(mut dims) if cx.int("new_axis", 0) != 0 => {
            let at = cx.axis(axis, dims.len() + 1)?;
            dims.insert(at, cx.fresh(0, at));
            Some(dims)
        }
        Some(mut dims) => {
            let at = cx.axis(axis, dims.len())?;
            dims[at] = cx.fresh(0, at);
            Some(dims)
        }
        None => None,
    };
    cx.set(0, dtype, dims);
    Ok(())
}

fn optional(cx: &mut Cx<'_>) -> Outcome {
    let inner = if cx.has(0) {
        Some(Arc::new(cx.ty(0)?.clone()))
    } else {
        let Some(heirloom_graph::AttrValue::Other(proto)) = cx.attr("type") else {
            return Err(Stop::Unknown);
        };
        let ty = proto.tp().and_then(declared_element);
        ty.map(Arc::new)
    };
    set(cx, Type::Optional(inner))
}

/// The tensor or sequence type that an attribute declares.
fn declared_element(ty: &heirloom_proto::TypeProto) -> Option<Type> {
    use heirloom_proto::type_proto::Value;
    match ty.value()? {
        Value::TensorType(tensor) => Some(Type::tensor(DType::from_onnx(tensor.elem_type())?, None)),
        Value::SequenceType(sequence) => {
            Some(Type::Sequence(sequence.elem_type().and_then(declared_element).map(Arc::new)))
        }
        _ => None,
    }
}

fn has_element(cx: &mut Cx<'_>) -> Outcome {
    cx.set(0, DType::Bool, Some(Vec::new()));
    Ok(())
}

fn get_element(cx: &mut Cx<'_>) -> Outcome {
    let fact = match cx.ty(0)? {
        Type::Optional(Some(inner)) => Fact::of((**inner).clone()),
        Type::Optional(None) => return Err(Stop::Unknown),
        _ => cx.fact(0)?.clone(),
    };
    cx.set_fact(0, fact);
    Ok(())
}
