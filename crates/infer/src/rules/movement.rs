//! Operators that move elements: transposition, joining and splitting.

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Elem, Fact, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("Concat", concat),
    ("DepthToSpace", depth_to_space),
    ("ReverseSequence", same),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Transpose", transpose),
    ("Trilu", same),
];

fn same(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims);
    Ok(())
}

fn transpose(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let result = match (dims, cx.opt_ints("perm")) {
        (Some(dims), Some(perm)) => {
            if perm.len() != dims.len() {
                return Err(cx.refuse(0, format!("`perm` is of {} axes", perm.len())));
            }
            let axes = cx.axes(perm, dims.len())?;
            Some(axes.into_iter().map(|axis| dims[axis].clone()).collect())
        }
        (Some(dims), None) => Some(dims.into_iter().rev().collect()),
        (None, Some(perm)) => Some(vec![None; perm.len()]),
        (None, None) => None,
    };
    // At most one axis of more than one element: the order of the elements stays.
    let long = |dim: &&Dim| !dim.as_ref().is_some_and(|it| it.is(1));
    let keeps = result.as_ref().is_some_and(|dims: &Vec<Dim>| dims.iter().filter(long).count() <= 1);
    let elems = if keeps { cx.elems(0).map(Vec::from) } else { None };
    cx.set_fact(0, Fact::tensor(dtype, result).with_elems(elems));
    Ok(())
}

fn concat(cx: &mut Cx<'_>) -> Outcome {
    let count = cx.inputs.len();
    let dtype = (0..count).find_map(|input| cx.dtype(input).ok()).ok_or(Stop::Unknown)?;
    let Some(ranked) = (0..count).find(|&input| cx.dims(input).is_ok()) else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let rank = cx.dims(ranked)?.len();
    let axis = cx.axis(cx.int("axis", 1), rank)?;
    let mut result = Vec::from(cx.dims(ranked)?);
    let mut along: Dim = Some(Expr::number(0));
    for input in 0..count {
        let Ok(dims) = cx.dims(input) else {
            along = None;
            continue;
        };
        if dims.len() != rank {
            return Err(cx.refuse(
                input,
                format!("`{}` has {rank} axes, and all must have as many", cx.source(ranked, None).value),
            ));
        }
        for at in (0..rank).filter(|at| *at != axis) {
            result[at] = super::cx::better(result[at].take(), cx.same((ranked, at), (input, at))?);
        }
        along = along.and_then(|sum| sum.plus(dims[axis].as_ref()?));
    }
    result[axis] = along;
    let elems = if rank == 1 { joined(cx) } else { None };
    cx.set_fact(0, Fact::tensor(dtype, Some(result)).with_elems(elems));
    Ok(())
}

/// The elements of vectors one after another; those of a vector of known length may be unknown.
fn joined(cx: &Cx<'_>) -> Option<Vec<Option<Elem>>> {
    let mut elems = Vec::new();
    for input in 0..cx.inputs.len() {
        match cx.elems(input) {
            Some(part) => elems.extend(part.iter().cloned()),
            None => {
                let extent = cx.dims(input).ok()?.first()?.as_ref()?.as_number()?;
                elems.extend(std::iter::repeat_n(None, usize::try_from(extent).ok().filter(|it| *it < 256)?));
            }
        }
    }
    Some(elems)
}

fn split(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let outputs = cx.outputs.len();
    let Some(dims) = dims else {
        (0..outputs).for_each(|output| cx.set(output, dtype, None));
        return Ok(());
    };
    let axis = cx.axis(cx.int("axis", 0), dims.len())?;
    let sizes: Vec<Dim> = match cx.opt_ints("split") {
        Some(sizes) => sizes.iter().map(|&size| Some(Expr::number(size))).collect(),
        None if cx.has(1) => cx.ints(1).unwrap_or_else(|| vec![None; outputs]),
        None => {
            let parts = cx.opt_int("num_outputs").map_or(Expr::from(outputs), Expr::number);
            // All parts are equal but the last, which may be smaller.
            let part = dims[axis].as_ref().and_then(|extent| extent.ceil_div(&parts));
            let whole = dims[axis].as_ref().and_then(|extent| extent.exact_quotient(&parts));
            let before = Expr::from(outputs.saturating_sub(1));
            let last = match whole {
                Some(part) => Some(part),
                None => part.as_ref().and_then(|part| dims[axis].as_ref()?.minus(&part.times(&before)?)),
            };
            let mut sizes = vec![part; outputs];
            if let Some(slot) = sizes.last_mut() {
                *slot = last;
            }
            sizes
        }
    };
    if let (Some(extent), Some(total)) =
        (&dims[axis], sizes.iter().try_fold(Expr::number(0), |sum, it| sum.plus(it.as_ref()?)))
        && sizes.len() == outputs
        && extent.differs(&total)
    {
        return Err(cx.refuse(0, format!("its {extent} elements along axis {axis} are split into {total}")));
    }
    let mut at = Some(0usize);
    for output in 0..outputs {
        let size = sizes.get(output).cloned().flatten();
        let mut dims = dims.clone();
        let length = size.as_ref().and_then(Expr::as_number).and_then(|it| usize::try_from(it).ok());
        let part = at.zip(length).and_then(|(at, length)| {
            if dims.len() == 1 {
                Some(Vec::from(cx.elems(0)?.get(at..at.checked_add(length)?)?))
            } else {
                None
            }
        });
        at = at.zip(length).and_then(|(at, length)| at.checked_add(length));
        dims[axis] = size;
        cx.set_fact(output, Fact::tensor(dtype, Some(dims)).with_elems(part));
    }
    Ok(())
}

fn depth_to_space(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = Vec::from(cx.dims_of_rank(0, 4)?);
    let size = Expr::number(cx.int("blocksize", 1));
    let channels = dims[1].as_ref().and_then(|c| c.exact_quotient(&size.times(&size)?));
    let grown = |dim: &Dim| dim.as_ref()?.times(&size);
    cx.set(0, dtype, Some(vec![dims[0].clone(), channels, grown(&dims[2]), grown(&dims[3])]));
    Ok(())
}

fn space_to_depth(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = Vec::from(cx.dims_of_rank(0, 4)?);
    let size = Expr::number(cx.int("blocksize", 1));
    let channels = dims[1].as_ref().and_then(|c| c.times(&size)?.times(&size));
    let shrunk = |dim: &Dim| dim.as_ref()?.floor_div(&size);
    cx.set(0, dtype, Some(vec![dims[0].clone(), channels, shrunk(&dims[2]), shrunk(&dims[3])]));
    Ok(())
}
