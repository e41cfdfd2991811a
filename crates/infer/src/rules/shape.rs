//! Operators about shapes: constants, `Shape`, `Reshape` and those that add, drop or repeat axes.

use heirloom_graph::AttrValue;
use heirloom_mem::DType;
use heirloom_types::Value;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Elem, Fact, MOST_ELEMS, TensorFact, Type};

pub(super) const RULES: &[Rule] = &[
    ("Constant", constant),
    ("ConstantOfShape", constant_of_shape),
    ("Expand", expand),
    ("EyeLike", eye_like),
    ("Flatten", flatten),
    ("Range", range),
    ("Reshape", reshape),
    ("Shape", shape),
    ("Size", size),
    ("Squeeze", squeeze),
    ("Tile", tile),
    ("Unsqueeze", unsqueeze),
];

fn one() -> Dim {
    Some(Expr::number(1))
}

fn constant(cx: &mut Cx<'_>) -> Outcome {
    let list = |count: usize| Some(vec![Some(Expr::from(count))]);
    let int = |value: &i64| Some(Elem::Int(Expr::number(*value)));
    let float = |value: &f32| Some(Elem::Real(f64::from(*value)));
    let fact = if let Some(AttrValue::Tensor(tensor)) = cx.attr("value") {
        Fact::of_value(&Value::Tensor(tensor.clone()))
    } else if let Some(AttrValue::Strings1(strings)) = cx.attr("value") {
        Fact::of_value(&Value::Strings(strings.clone()))
    } else if let Some(AttrValue::Int(value)) = cx.attr("value_int") {
        Fact::tensor(DType::Int64, Some(Vec::new())).with_elems(Some(vec![int(value)]))
    } else if let Some(AttrValue::Ints(values)) = cx.attr("value_ints") {
        let elems = values.iter().map(int).collect();
        Fact::tensor(DType::Int64, list(values.len())).with_elems(Some(elems))
    } else if let Some(AttrValue::Float(value)) = cx.attr("value_float") {
        Fact::tensor(DType::Float, Some(Vec::new())).with_elems(Some(vec![float(value)]))
    } else if let Some(AttrValue::Floats(values)) = cx.attr("value_floats") {
        let elems = values.iter().map(float).collect();
        Fact::tensor(DType::Float, list(values.len())).with_elems(Some(elems))
    } else if let Some(AttrValue::String(_)) = cx.attr("value_string") {
        Fact::tensor(DType::String, Some(Vec::new()))
    } else if let Some(AttrValue::Strings(values)) = cx.attr("value_strings") {
        Fact::tensor(DType::String, list(values.len()))
    } else {
        // A sparse value: its dense shape stands in the message.
        let Some(AttrValue::Other(proto)) = cx.attr("sparse_value") else { return Err(Stop::Unknown) };
        let sparse = proto.sparse_tensor().ok_or(Stop::Unknown)?;
        let dtype = sparse.values().and_then(|values| DType::from_onnx(values.data_type()));
        let dims = sparse.dims().iter().map(|&dim| Some(Expr::number(dim))).collect();
        Fact::tensor(dtype.ok_or(Stop::Unknown)?, Some(dims))
    };
    cx.set_fact(0, fact);
    Ok(())
}

/// Extents that an input holds. Where their number is not known, the rank is not.
fn extents(cx: &Cx<'_>, input: usize) -> Option<Vec<Dim>> {
    let not_negative = |dim: Dim| dim.filter(|expr| expr.as_number().is_none_or(|number| number >= 0));
    Some(cx.ints(input)?.into_iter().map(not_negative).collect())
}

fn constant_of_shape(cx: &mut Cx<'_>) -> Outcome {
    let value = match cx.attr("value") {
        Some(AttrValue::Tensor(tensor)) => Some(tensor.clone()),
        _ => None,
    };
    let dtype = value.as_ref().map_or(DType::Float, |value| value.dtype());
    let dims = extents(cx, 0);
    let elem = match &value {
        Some(value) => {
            Fact::of_value(&Value::Tensor(value.clone())).elems.and_then(|it| it.first().cloned().flatten())
        }
        None => Some(Elem::Real(0.0)),
    };
    let elems = dims.as_ref().and_then(|dims| count(dims)).map(|count| vec![elem; count]);
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

/// The number of elements, where it is known and small.
fn count(dims: &[Dim]) -> Option<usize> {
    let product = Expr::product(dims.iter().map(Option::as_ref).collect::<Option<Vec<_>>>()?)?.as_number()?;
    usize::try_from(product).ok().filter(|&count| count <= MOST_ELEMS)
}

fn expand(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let (Some(dims), Some(wanted)) = (dims, extents(cx, 1)) else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let rank = dims.len().max(wanted.len());
    let at = |list: &[Dim], axis: usize| match (axis + list.len()).checked_sub(rank) {
        Some(own) => list[own].clone(),
        None => one(),
    };
    let mut result = Vec::with_capacity(rank);
    for axis in 0..rank {
        let (a, b) = (at(&dims, axis), at(&wanted, axis));
        result.push(match (a, b) {
            (Some(a), b) if a.is(1) => b,
            (a, Some(b)) if b.is(1) => a,
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(a), Some(b)) if a.as_number().is_some() && b.as_number().is_some() => {
                return Err(cx.refuse(0, format!("cannot be expanded to {b} along axis {axis}")));
            }
            (Some(a), _) if a.as_number().is_some() => Some(a),
            (_, Some(b)) if b.as_number().is_some() => Some(b),
            _ => None,
        });
    }
    let elems = match (cx.elems(0), count(&result)) {
        (Some([elem]), Some(count)) => Some(vec![elem.clone(); count]),
        (Some(elems), Some(count)) if elems.len() == count => Some(Vec::from(elems)),
        _ => None,
    };
    cx.set_fact(0, Fact::tensor(dtype, Some(result)).with_elems(elems));
    Ok(())
}

fn eye_like(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, cx.dtype_attr("dtype").unwrap_or(dtype), dims);
    Ok(())
}

fn product(dims: &[Dim]) -> Dim {
    Expr::product(dims.iter().map(Option::as_ref).collect::<Option<Vec<_>>>()?)
}

fn flatten(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let result = match &dims {
        None => vec![None, None],
        Some(dims) => {
            let rank = dims.len();
            let axis = cx.int("axis", 1);
            let at = if axis == rank as i64 { rank } else { cx.axis(axis, rank)? };
            vec![product(&dims[..at]), product(&dims[at..])]
        }
    };
    let elems = cx.elems(0).map(Vec::from);
    cx.set_fact(0, Fact::tensor(dtype, Some(result)).with_elems(elems));
    Ok(())
}

fn range(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0).or_else(|_| cx.dtype(1)).or_else(|_| cx.dtype(2))?;
    let first = |input: usize| cx.elems(input).and_then(|elems| elems.first()?.clone());
    let bounds = (first(0), first(1), first(2));
    let (dim, elems) = match bounds {
        (Some(Elem::Int(start)), Some(Elem::Int(limit)), Some(Elem::Int(delta))) => {
            let dim = delta.as_number().filter(|delta| *delta != 0).and_then(|delta| {
                let (span, by) = if delta > 0 {
                    (limit.minus(&start)?, Expr::number(delta))
                } else {
                    (start.minus(&limit)?, Expr::number(delta.checked_neg()?))
                };
                span.ceil_div(&by)?.greater_of(&Expr::number(0))
            });
            let count = dim.as_ref().and_then(Expr::as_number).and_then(|count| usize::try_from(count).ok());
            let elems = count.filter(|&count| count <= MOST_ELEMS).map(|count| {
                let at = |at: usize| start.plus(&delta.times(&Expr::from(at))?).map(Elem::Int);
                (0..count).map(at).collect()
            });
            (dim, elems)
        }
        (Some(Elem::Real(start)), Some(Elem::Real(limit)), Some(Elem::Real(delta))) => {
            let count = ((limit - start) / delta).ceil().max(0.0);
            ((count < 1e15).then(|| Expr::number(count as i64)), None)
        }
        _ => (cx.fresh(0, 0), None),
    };
    let dim = dim.or_else(|| cx.fresh(0, 0));
    cx.set_fact(0, Fact::tensor(dtype, Some(vec![dim])).with_elems(elems));
    Ok(())
}

fn reshape(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let wanted = match cx.opt_ints("shape") {
        Some(shape) if cx.opset < 5 => Some(shape.iter().map(|&it| Some(Expr::number(it))).collect()),
        _ => cx.ints(1),
    };
    let Some(wanted) = wanted else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let allow_zero = cx.int("allowzero", 0) != 0;
    let mut result: Vec<Dim> = Vec::with_capacity(wanted.len());
    let (mut open, mut unknown) = (None, 0usize);
    for (axis, extent) in wanted.iter().enumerate() {
        let dim = match extent {
            Some(expr) if expr.is(-1) => {
                open = Some(axis);
                None
            }
            Some(expr) if expr.is(0) && !allow_zero => {
                let dim = dims.as_ref().and_then(|dims| dims.get(axis).cloned().flatten());
                unknown += usize::from(dim.is_none());
                dim
            }
            // What may be -1 says nothing; extents may not.
            Some(expr) if expr.least().is_some_and(|least| least >= 0) => Some(expr.clone()),
            _ => {
                unknown += 1;
                None
            }
        };
        result.push(dim);
    }
    let total = dims.as_deref().and_then(product);
    // One extent that is asked for as -1, or whose value is not known, follows from the others.
    let missing = match (open, unknown) {
        (Some(axis), 0) => Some(axis),
        (None, 1) => result.iter().position(Option::is_none),
        _ => None,
    };
    if let (Some(axis), Some(from)) = (missing, &dims) {
        result[axis] = rest(from, &result, &wanted, axis, allow_zero);
    }
    if missing.is_none()
        && let (Some(total), Some(filled)) = (&total, product(&result))
        && total.differs(&filled)
        && (total.as_number().is_none() || filled.as_number().is_none() || unknown == 0)
    {
        return Err(cx.refuse(
            0,
            format!("its {total} elements do not fill the shape that is asked for, of {filled}"),
        ));
    }
    let elems = cx.elems(0).map(Vec::from);
    cx.set_fact(0, Fact::tensor(dtype, Some(result)).with_elems(elems));
    Ok(())
}

/// The extent of `axis`, from all elements by those of the other axes. Extents that both sides have are left out, so that
/// one that is not known does not matter.
fn rest(from: &[Dim], to: &[Dim], wanted: &[Dim], axis: usize, allow_zero: bool) -> Dim {
    let mut left: Vec<Dim> = Vec::from(from);
    let mut others: Vec<Dim> = Vec::new();
    for (at, dim) in to.iter().enumerate().filter(|(at, _)| *at != axis) {
        let copied = !allow_zero && wanted[at].as_ref().is_some_and(|it| it.is(0));
        match left.iter().position(|it| it.is_some() && it == dim) {
            Some(place) => {
                left.remove(place);
            }
            None if copied && dim.is_none() => return None,
            None => others.push(dim.clone()),
        }
    }
    product(&left)?
        .exact_quotient(&product(&others)?)
        .or_else(|| product(&left)?.floor_div(&product(&others)?))
}

fn shape(cx: &mut Cx<'_>) -> Outcome {
    let Ok(dims) = cx.dims(0) else {
        cx.set(0, DType::Int64, Some(vec![None]));
        return Ok(());
    };
    let rank = dims.len() as i64;
    let clamp = |at: i64| usize::try_from(if at < 0 { at + rank } else { at }.clamp(0, rank)).unwrap_or(0);
    let (start, end) = (clamp(cx.int("start", 0)), clamp(cx.opt_int("end").unwrap_or(rank)));
    let part = dims.get(start..end.max(start)).unwrap_or_default();
    let elems = part.iter().map(|dim| dim.clone().map(Elem::Int)).collect();
    let count = Some(vec![Some(Expr::from(part.len()))]);
    cx.set_fact(0, Fact::tensor(DType::Int64, count).with_elems(Some(elems)));
    Ok(())
}

fn size(cx: &mut Cx<'_>) -> Outcome {
    let elem = cx.dims(0).ok().and_then(product).map(Elem::Int);
    cx.set_fact(0, Fact::tensor(DType::Int64, Some(Vec::new())).with_elems(Some(vec![elem])));
    Ok(())
}

fn squeeze(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let axes = cx.attr_or_input("axes", 1);
    let result = match (dims, axes) {
        (Some(dims), Ok(Some(axes))) => {
            let axes = cx.axes(&axes, dims.len())?;
            for &axis in &axes {
                if let Some(extent) = dims[axis].as_ref().filter(|it| it.differs(&Expr::number(1))) {
                    return Err(
                        cx.refuse(0, format!("axis {axis} is dropped, so it must be 1, not {extent}"))
                    );
                }
            }
            Some(
                dims.into_iter()
                    .enumerate()
                    .filter(|(at, _)| !axes.contains(at))
                    .map(|(_, dim)| dim)
                    .collect(),
            )
        }
        // All axes of 1: which, is only known when every extent is a number or greater than 1.
        (Some(dims), Ok(None)) => {
            let is_one = |dim: &Dim| Some(dim.as_ref()?.as_number()? == 1);
            let ones: Option<Vec<bool>> = dims.iter().map(is_one).collect();
            ones.map(|ones| dims.into_iter().zip(ones).filter(|(_, one)| !one).map(|(dim, _)| dim).collect())
        }
        (Some(dims), Err(_)) => match cx.ints(1) {
            Some(axes) if axes.len() <= dims.len() => Some(vec![None; dims.len() - axes.len()]),
            _ => None,
        },
        _ => None,
    };
    let elems = cx.elems(0).map(Vec::from);
    cx.set_fact(0, Fact::tensor(dtype, result).with_elems(elems));
    Ok(())
}

fn unsqueeze(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let result = match (dims, cx.attr_or_input("axes", 1)) {
        (Some(dims), Ok(Some(axes))) => {
            let rank = dims.len() + axes.len();
            let axes = cx.axes(&axes, rank)?;
            let mut old = dims.into_iter();
            Some((0..rank).map(|at| if axes.contains(&at) { one() } else { old.next().flatten() }).collect())
        }
        (Some(dims), _) => cx.ints(1).map(|axes| vec![None; dims.len() + axes.len()]),
        _ => None,
    };
    let elems = cx.elems(0).map(Vec::from);
    cx.set_fact(0, Fact::tensor(dtype, result).with_elems(elems));
    Ok(())
}

fn tile(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let result: Option<Vec<Dim>> = dims.map(|dims| {
        let repeats = cx.ints(1).filter(|repeats| repeats.len() == dims.len());
        let repeats = repeats.unwrap_or_else(|| vec![None; dims.len()]);
        dims.iter().zip(repeats).map(|(dim, times)| dim.as_ref()?.times(&times?)).collect()
    });
    let elems = match (cx.elems(0), result.as_deref().and_then(count), cx.dims(0)) {
        (Some(elems), Some(count), Ok([_])) if !elems.is_empty() => {
            Some(elems.iter().cycle().take(count).cloned().collect())
        }
        _ => None,
    };
    cx.set_fact(
        0,
        Fact { ty: Some(Type::tensor(dtype, result)), elems: None, physical: None }.with_elems(elems),
    );
    Ok(())
}
