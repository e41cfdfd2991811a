//! Operators that pick and put elements by index.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule};
use crate::Expr;
use crate::fact::{Dim, Elem, Fact, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("Gather", gather),
    ("GatherElements", gather_elements),
    ("GatherND", gather_nd),
    ("Scatter", scatter),
    ("ScatterElements", scatter),
    ("ScatterND", scatter_nd),
    ("TensorScatter", scatter),
];

pub(super) const MICROSOFT: &[Rule] = &[("GatherBlockQuantized", gather_block_quantized)];

/// Codes packed into bytes stand side by side on the last axis.
fn gather_block_quantized(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype: codes, dims } = cx.tensor(0)?.clone();
    let dtype = cx.dtype(2)?;
    let (Some(mut dims), Ok(indices)) = (dims, cx.dims(1)) else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let each = match codes {
        DType::Uint8 => 8 / cx.int("bits", 4).clamp(1, 8),
        _ => 1,
    };
    if let Some(last) = dims.last_mut() {
        *last = last.as_ref().and_then(|last| last.times(&Expr::number(each)));
    }
    let axis = cx.axis(cx.int("gather_axis", 0), dims.len())?;
    let result: Vec<Dim> = dims[..axis].iter().chain(indices).chain(&dims[axis + 1..]).cloned().collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn gather(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let (Some(dims), Ok(indices)) = (dims, cx.dims(1)) else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let axis = cx.axis(cx.int("axis", 0), dims.len())?;
    let result: Vec<Dim> = dims[..axis].iter().chain(indices).chain(&dims[axis + 1..]).cloned().collect();
    let elems = if dims.len() == 1 { picked(cx) } else { None };
    cx.set_fact(0, Fact::tensor(dtype, Some(result)).with_elems(elems));
    Ok(())
}

/// Elements of a vector, by known indices.
fn picked(cx: &Cx<'_>) -> Option<Vec<Option<Elem>>> {
    let elems = cx.elems(0)?;
    let pick = |index: Dim| {
        let index = index?.as_number()?;
        let index = if index < 0 { index + elems.len() as i64 } else { index };
        elems.get(usize::try_from(index).ok()?)?.clone()
    };
    Some(cx.ints(1)?.into_iter().map(pick).collect())
}

fn gather_elements(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = cx.tensor(1).ok().and_then(|indices| indices.dims.clone());
    cx.set(0, dtype, dims);
    Ok(())
}

fn gather_nd(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let depth = |indices: &[Dim]| usize::try_from(indices.last()?.as_ref()?.as_number()?).ok();
    let batch = usize::try_from(cx.int("batch_dims", 0)).unwrap_or(0);
    let result = match (dims, cx.dims(1)) {
        (Some(dims), Ok(indices)) => depth(indices).and_then(|depth| {
            let rest = dims.get(batch.checked_add(depth)?..)?;
            Some(indices[..indices.len() - 1].iter().chain(rest).cloned().collect())
        }),
        _ => None,
    };
    cx.set(0, dtype, result);
    Ok(())
}

fn scatter(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let elems = match &dims {
        Some(dims) if dims.len() == 1 => put(cx),
        _ => None,
    };
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

fn scatter_nd(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let is_vector = dims.as_ref().is_some_and(|dims| dims.len() == 1);
    let by_one =
        cx.dims(1).is_ok_and(|it| it.last().is_some_and(|it| it.as_ref().is_some_and(|it| it.is(1))));
    let elems = if is_vector && by_one { put(cx) } else { None };
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

/// A vector with some elements replaced.
fn put(cx: &Cx<'_>) -> Option<Vec<Option<Elem>>> {
    if !matches!(cx.string("reduction"), "" | "none") {
        return None;
    }
    let mut elems = Vec::from(cx.elems(0)?);
    let (indices, updates) = (cx.ints(1)?, cx.elems(2)?);
    for (index, update) in indices.iter().zip(updates) {
        let index = index.as_ref()?.as_number()?;
        let index = if index < 0 { index + elems.len() as i64 } else { index };
        *elems.get_mut(usize::try_from(index).ok()?)? = update.clone();
    }
    Some(elems)
}

/// Where both lie in a vector of `extent` elements, the bound for `Slice` and the like.
pub(super) fn from_the_front(index: &Expr, extent: &Expr) -> Option<Expr> {
    match (index.least(), index.most()) {
        (Some(least), _) if least >= 0 => Some(index.clone()),
        (_, Some(most)) if most < 0 => index.plus(extent),
        _ => None,
    }
}
