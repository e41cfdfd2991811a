//! Operators that take one or more axes together.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, Stop, compute};
use crate::Expr;
use crate::fact::{Dim, Elem, Fact, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("ArgMax", arg),
    ("ArgMin", arg),
    ("GlobalAveragePool", global),
    ("GlobalLpPool", global),
    ("GlobalMaxPool", global),
    ("ReduceL1", reduce),
    ("ReduceL2", reduce),
    ("ReduceLogSum", reduce),
    ("ReduceLogSumExp", reduce),
    ("ReduceMax", reduce),
    ("ReduceMean", reduce),
    ("ReduceMin", reduce),
    ("ReduceProd", reduce),
    ("ReduceSum", reduce),
    ("ReduceSumSquare", reduce),
];

fn reduce(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let keep = cx.int("keepdims", 1) != 0;
    let axes = cx.attr_or_input("axes", 1);
    let result = match (dims, axes) {
        (Some(dims), Ok(axes)) => {
            let axes = axes.filter(|axes| !axes.is_empty());
            if axes.is_none() && cx.int("noop_with_empty_axes", 0) != 0 {
                Some(dims)
            } else {
                let axes = match axes {
                    Some(axes) => cx.axes(&axes, dims.len())?,
                    None => (0..dims.len()).collect(),
                };
                Some(without(dims, &axes, keep))
            }
        }
        // Which axes is not known: the rank stays where they are kept.
        (Some(dims), Err(_)) if keep => Some(vec![None; dims.len()]),
        (Some(dims), Err(_)) => match cx.ints(1) {
            Some(axes) if !axes.is_empty() && axes.len() <= dims.len() => {
                Some(vec![None; dims.len() - axes.len()])
            }
            _ => None,
        },
        _ => None,
    };
    let elems = folded(cx);
    cx.set_fact(0, Fact::tensor(dtype, result).with_elems(elems));
    Ok(())
}

/// The product, sum or extreme of a known vector.
fn folded(cx: &Cx<'_>) -> Option<Vec<Option<Elem>>> {
    let op = match &*cx.node.op_type {
        "ReduceProd" => "Mul",
        "ReduceSum" => "Add",
        "ReduceMax" => "Max",
        "ReduceMin" => "Min",
        _ => return None,
    };
    if cx.dims(0).ok()?.len() > 1 {
        return None;
    }
    let (first, rest) = cx.elems(0)?.split_first()?;
    let folded = rest.iter().try_fold(first.clone()?, |sum, next| compute::binary(op, &sum, next.as_ref()?));
    Some(vec![folded])
}

pub(super) fn without(dims: Vec<Dim>, axes: &[usize], keep: bool) -> Vec<Dim> {
    let one = |(at, dim)| match (axes.contains(&at), keep) {
        (false, _) => Some(dim),
        (true, true) => Some(Some(Expr::number(1))),
        (true, false) => None,
    };
    dims.into_iter().enumerate().filter_map(one).collect()
}

fn arg(cx: &mut Cx<'_>) -> Outcome {
    let dims = match cx.dims(0) {
        Ok(dims) => {
            let axis = cx.axis(cx.int("axis", 0), dims.len())?;
            Some(without(Vec::from(dims), &[axis], cx.int("keepdims", 1) != 0))
        }
        Err(Stop::Unknown) => None,
        Err(other) => return Err(other),
    };
    cx.set(0, DType::Int64, dims);
    Ok(())
}

/// All axes behind the channels become 1.
fn global(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = cx.dims_of_rank(0, 2)?;
    let result =
        dims.iter().enumerate().map(|(at, dim)| if at < 2 { dim.clone() } else { Some(Expr::number(1)) });
    cx.set(0, dtype, Some(result.collect()));
    Ok(())
}
