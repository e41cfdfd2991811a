//! Operators whose outputs have the shape of an input, or of all inputs after broadcasting.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, compute};
use crate::fact::{Elem, Fact, MOST_ELEMS, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("Abs", same),
    ("Acos", same),
    ("Acosh", same),
    ("Add", binary),
    ("And", logical),
    ("Asin", same),
    ("Asinh", same),
    ("Atan", same),
    ("Atanh", same),
    ("BatchNormalization", batch_normalization),
    ("BitCast", bit_cast),
    ("BitShift", binary),
    ("BitwiseAnd", binary),
    ("BitwiseNot", same),
    ("BitwiseOr", binary),
    ("BitwiseXor", binary),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Ceil", same),
    ("Celu", same),
    ("Clip", same),
    ("Cos", same),
    ("Cosh", same),
    ("CumProd", same),
    ("CumSum", same),
    ("Div", binary),
    ("Dropout", dropout),
    ("Elu", same),
    ("Equal", logical),
    ("Erf", same),
    ("Exp", same),
    ("Floor", same),
    ("Gelu", same),
    ("Greater", logical),
    ("GreaterOrEqual", logical),
    ("GroupNormalization", same),
    ("HardSigmoid", same),
    ("HardSwish", same),
    ("Hardmax", same),
    ("Identity", identity),
    ("InstanceNormalization", same),
    ("IsInf", truth),
    ("IsNaN", truth),
    ("LRN", same),
    ("LayerNormalization", layer_normalization),
    ("LeakyRelu", same),
    ("Less", logical),
    ("LessOrEqual", logical),
    ("Log", same),
    ("LogSoftmax", same),
    ("LpNormalization", same),
    ("Max", variadic),
    ("Mean", variadic),
    ("MeanVarianceNormalization", same),
    ("Min", variadic),
    ("Mish", same),
    ("Mod", binary),
    ("Mul", binary),
    ("Neg", same),
    ("Not", same),
    ("Or", logical),
    ("PRelu", same),
    ("Pow", power),
    ("RMSNormalization", same),
    ("Reciprocal", same),
    ("Relu", same),
    ("Round", same),
    ("Selu", same),
    ("Shrink", same),
    ("Sigmoid", same),
    ("Sign", same),
    ("SimplifiedLayerNormalization", same),
    ("Sin", same),
    ("Sinh", same),
    ("Softmax", same),
    ("Softplus", same),
    ("Softsign", same),
    ("Sqrt", same),
    ("Sub", binary),
    ("Sum", variadic),
    ("Swish", same),
    ("Tan", same),
    ("Tanh", same),
    ("ThresholdedRelu", same),
    ("Where", choose),
    ("Xor", logical),
];

pub(super) const MICROSOFT: &[Rule] = &[
    ("BiasGelu", binary),
    ("FastGelu", same),
    ("Gelu", same),
    ("QuickGelu", same),
    ("SkipLayerNormalization", skip_normalization),
    ("SkipSimplifiedLayerNormalization", skip_normalization),
];

/// One output of the first input's type.
fn same(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let op = &*cx.node.op_type;
    let elems = cx.elems(0).map(|elems| elems.iter().map(|it| compute::unary(op, it.as_ref()?)).collect());
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

/// Any value, as it is.
fn identity(cx: &mut Cx<'_>) -> Outcome {
    let fact = cx.fact(0)?.clone();
    cx.set_fact(0, fact);
    Ok(())
}

fn truth(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    cx.set(0, DType::Bool, dims);
    Ok(())
}

fn binary(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0).or_else(|_| cx.dtype(1))?;
    if let (Ok(a), Ok(b)) = (cx.dtype(0), cx.dtype(1))
        && a != b
    {
        return Err(cx.refuse(
            1,
            format!("the operator takes elements of one type, and `{}` holds {a}", cx.source(0, None).value),
        ));
    }
    elementwise(cx, &[0, 1], dtype)
}

/// The exponent may have a type of its own.
fn power(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    elementwise(cx, &[0, 1], dtype)
}

fn logical(cx: &mut Cx<'_>) -> Outcome {
    elementwise(cx, &[0, 1], DType::Bool)
}

fn variadic(cx: &mut Cx<'_>) -> Outcome {
    let inputs: Vec<usize> = (0..cx.input_count()).collect();
    let dtype = inputs.iter().find_map(|&input| cx.dtype(input).ok()).ok_or(super::Stop::Unknown)?;
    elementwise(cx, &inputs, dtype)
}

fn elementwise(cx: &mut Cx<'_>, inputs: &[usize], dtype: DType) -> Outcome {
    // Before version 7 the second operand is spread along an axis of the first.
    let is_legacy = cx.opset < 7 && cx.node.domain.is_empty() && cx.opt_int("broadcast").is_some();
    let dims = if is_legacy { Some(Vec::from(cx.dims(0)?)) } else { cx.broadcast(inputs)? };
    let op = &*cx.node.op_type;
    let elems = if is_legacy { None } else { combined(cx, inputs, |a, b| compute::binary(op, a, b)) };
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

/// Known elements of an operator that goes through its inputs from the left.
fn combined(
    cx: &Cx<'_>,
    inputs: &[usize],
    of: impl Fn(&Elem, &Elem) -> Option<Elem>,
) -> Option<Vec<Option<Elem>>> {
    let (first, rest) = inputs.split_first()?;
    let mut elems = Vec::from(cx.elems(*first)?);
    let mut rank = cx.dims(*first).ok()?.len();
    for &input in rest {
        let (other, other_rank) = (cx.elems(input)?, cx.dims(input).ok()?.len());
        // Vectors and scalars only: shapes are nothing else.
        if rank.max(other_rank) > 1 && elems.len() != other.len() && elems.len() != 1 && other.len() != 1 {
            return None;
        }
        rank = rank.max(other_rank);
        let count = if elems.is_empty() || other.is_empty() { 0 } else { elems.len().max(other.len()) };
        let pick = |list: &[Option<Elem>], at: usize| list[if list.len() == 1 { 0 } else { at }].clone();
        if elems.len().min(other.len()) > 1 && elems.len() != other.len() {
            return None;
        }
        elems = (0..count).map(|at| of(&pick(&elems, at)?, &pick(other, at)?)).collect();
    }
    Some(elems)
}

fn choose(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(1).or_else(|_| cx.dtype(2))?;
    let dims = cx.broadcast(&[0, 1, 2])?;
    let count = dims.as_ref().and_then(|dims| {
        let extents = dims.iter().map(|dim| dim.as_ref()?.as_number());
        extents.product::<Option<i64>>().and_then(|count| usize::try_from(count).ok())
    });
    let elems = match (cx.elems(0), cx.elems(1), cx.elems(2), count) {
        (Some(condition), a, b, Some(count)) if count <= MOST_ELEMS => {
            let pick = |list: Option<&[Option<Elem>]>, at: usize| match list {
                Some([one]) => one.clone(),
                Some(list) if list.len() == count => list[at].clone(),
                _ => None,
            };
            let one = |at: usize| match pick(Some(condition), at) {
                Some(Elem::Bool(true)) => pick(a, at),
                Some(Elem::Bool(false)) => pick(b, at),
                _ => pick(a, at).filter(|it| Some(it) == pick(b, at).as_ref()),
            };
            Some((0..count).map(one).collect())
        }
        _ => None,
    };
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

fn cast(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("to").ok_or(super::Stop::Unknown)?;
    converted(cx, dtype)
}

fn cast_like(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(1)?;
    converted(cx, dtype)
}

fn converted(cx: &mut Cx<'_>, dtype: DType) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    let elems = cx.elems(0).map(|elems| elems.iter().map(|it| compute::cast(it.as_ref()?, dtype)).collect());
    cx.set_fact(0, Fact::tensor(dtype, dims).with_elems(elems));
    Ok(())
}

/// The same bits as elements of another type of the same width.
fn bit_cast(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("to").ok_or(super::Stop::Unknown)?;
    let dims = cx.tensor(0)?.dims.clone();
    cx.set(0, dtype, dims);
    Ok(())
}

fn dropout(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let mask = if cx.opset >= 10 { DType::Bool } else { dtype };
    cx.set(0, dtype, dims.clone());
    cx.set(1, mask, dims);
    Ok(())
}

/// The first output has the input's type, running or saved statistics one element for each channel.
fn batch_normalization(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims);
    for (output, input) in [(1, 3), (2, 4), (3, 3), (4, 4)] {
        if let Ok(TensorFact { dtype, dims }) = cx.tensor(input).cloned() {
            cx.set(output, dtype, dims);
        }
    }
    Ok(())
}

/// Mean and inverse deviation have 1 for each normalized axis.
fn layer_normalization(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims.clone());
    let stash = cx.dtype_attr("stash_type").unwrap_or(DType::Float);
    if let Some(dims) = dims {
        let axis = cx.axis(cx.int("axis", -1), dims.len())?;
        let one = |(at, dim)| if at < axis { dim } else { Some(crate::Expr::number(1)) };
        let dims: Vec<_> = dims.into_iter().enumerate().map(one).collect();
        cx.set(1, stash, Some(dims.clone()));
        cx.set(2, stash, Some(dims));
    }
    Ok(())
}

/// The sum of input and skip, normalized, and as the fourth output the sum itself.
fn skip_normalization(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims.clone());
    cx.set(3, dtype, dims);
    Ok(())
}
