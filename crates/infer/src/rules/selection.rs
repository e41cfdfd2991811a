//! Operators that select, count and compare whole axes.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("Compress", compress),
    ("NegativeLogLikelihoodLoss", loss),
    ("NonMaxSuppression", non_max_suppression),
    ("NonZero", non_zero),
    ("OneHot", one_hot),
    ("SoftmaxCrossEntropyLoss", loss),
    ("TopK", top_k),
    ("Unique", unique),
];

fn non_zero(cx: &mut Cx<'_>) -> Outcome {
    let rank = cx.dims(0).ok().map(|dims| Expr::from(dims.len()));
    let count = cx.fresh(0, 1);
    cx.set(0, DType::Int64, Some(vec![rank, count]));
    Ok(())
}

fn compress(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = match (cx.opt_int("axis"), dims) {
        (None, _) => Some(vec![cx.fresh(0, 0)]),
        (Some(axis), Some(mut dims)) => {
            let axis = cx.axis(axis, dims.len())?;
            dims[axis] = cx.fresh(0, axis);
            Some(dims)
        }
        _ => None,
    };
    cx.set(0, dtype, dims);
    Ok(())
}

fn non_max_suppression(cx: &mut Cx<'_>) -> Outcome {
    let count = cx.fresh(0, 0);
    cx.set(0, DType::Int64, Some(vec![count, Some(Expr::number(3))]));
    Ok(())
}

fn one_hot(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(2)?;
    let dims = match cx.dims(0) {
        Ok(dims) => {
            let axis = cx.axis(cx.int("axis", -1), dims.len() + 1)?;
            let depth = cx.ints(1).and_then(|it| it.first()?.clone());
            let depth = depth.filter(|it| it.least().is_some_and(|least| least >= 0));
            let mut dims = Vec::from(dims);
            dims.insert(axis, depth);
            Some(dims)
        }
        Err(_) => None,
    };
    cx.set(0, dtype, dims);
    Ok(())
}

fn top_k(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = match dims {
        Some(mut dims) => {
            let axis = cx.axis(cx.int("axis", -1), dims.len())?;
            let k = cx.opt_int("k").map(Expr::number);
            dims[axis] = k.or_else(|| cx.ints(1)?.first()?.clone());
            Some(dims)
        }
        None => None,
    };
    cx.set(0, dtype, dims.clone());
    cx.set(1, DType::Int64, dims);
    Ok(())
}

fn unique(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    // The three further outputs are about what was made unique: as many as the first has, or as the input had.
    let (first, count, all): (Option<Vec<Dim>>, Dim, Dim) = match (cx.opt_int("axis"), dims) {
        (None, dims) => {
            let all = dims
                .and_then(|dims| Expr::product(dims.iter().map(Option::as_ref).collect::<Option<Vec<_>>>()?));
            (Some(vec![cx.fresh(0, 0)]), cx.fresh(0, 0), all)
        }
        (Some(axis), Some(mut dims)) => {
            let axis = cx.axis(axis, dims.len())?;
            let count = cx.fresh(0, axis);
            let all = std::mem::replace(&mut dims[axis], count.clone());
            (Some(dims), count, all)
        }
        _ => (None, None, None),
    };
    cx.set(0, dtype, first);
    cx.set(1, DType::Int64, Some(vec![count.clone()]));
    cx.set(2, DType::Int64, Some(vec![all]));
    cx.set(3, DType::Int64, Some(vec![count]));
    Ok(())
}

fn loss(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let scores = cx.tensor(0)?.dims.clone();
    let dims = match cx.string("reduction") {
        "none" => Some(cx.tensor(1).ok().and_then(|it| it.dims.clone()).ok_or(Stop::Unknown)?),
        _ => Some(Vec::new()),
    };
    cx.set(0, dtype, dims);
    cx.set(1, dtype, scores);
    Ok(())
}
