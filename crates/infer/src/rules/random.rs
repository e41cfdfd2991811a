//! Random tensors.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule};
use crate::Expr;
use crate::fact::TensorFact;

pub(super) const RULES: &[Rule] = &[
    ("Bernoulli", like),
    ("Multinomial", multinomial),
    ("RandomNormal", of_shape),
    ("RandomNormalLike", like),
    ("RandomUniform", of_shape),
    ("RandomUniformLike", like),
];

fn of_shape(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("dtype").unwrap_or(DType::Float);
    let dims = cx.opt_ints("shape").map(|shape| shape.iter().map(|&it| Some(Expr::number(it))).collect());
    cx.set(0, dtype, dims);
    Ok(())
}

fn like(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, cx.dtype_attr("dtype").unwrap_or(dtype), dims);
    Ok(())
}

fn multinomial(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("dtype").unwrap_or(DType::Int32);
    let batch = cx.dims(0).ok().and_then(|dims| dims.first()?.clone());
    let count = Some(Expr::number(cx.int("sample_size", 1)));
    cx.set(0, dtype, Some(vec![batch, count]));
    Ok(())
}
