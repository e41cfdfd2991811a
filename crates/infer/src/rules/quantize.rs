//! Quantization.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule};
use crate::fact::TensorFact;

pub(super) const RULES: &[Rule] =
    &[("DequantizeLinear", dequantize), ("DynamicQuantizeLinear", dynamic), ("QuantizeLinear", quantize)];

pub(super) const MICROSOFT: &[Rule] = &[
    ("DequantizeLinear", dequantize),
    ("QLinearAdd", q_linear_binary),
    ("QLinearConcat", q_linear_concat),
    ("QLinearLeakyRelu", same),
    ("QLinearMul", q_linear_binary),
    ("QLinearSigmoid", same),
    ("QLinearSoftmax", same),
    ("QuantizeLinear", quantize),
];

fn same(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims);
    Ok(())
}

fn quantize(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    let dtype = cx.dtype_attr("output_dtype").or_else(|| cx.dtype(2).ok()).unwrap_or(DType::Uint8);
    cx.set(0, dtype, dims);
    Ok(())
}

fn dequantize(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    let dtype = cx.dtype_attr("output_dtype").or_else(|| cx.dtype(1).ok()).unwrap_or(DType::Float);
    cx.set(0, dtype, dims);
    Ok(())
}

fn dynamic(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    cx.set(0, DType::Uint8, dims);
    cx.set(1, DType::Float, Some(Vec::new()));
    cx.set(2, DType::Uint8, Some(Vec::new()));
    Ok(())
}

fn q_linear_binary(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = cx.broadcast(&[0, 3])?;
    cx.set(0, dtype, dims);
    Ok(())
}

/// Inputs scale and zero point of the result, then each part with its own.
fn q_linear_concat(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(2)?.clone();
    let Some(mut dims) = dims else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let axis = cx.axis(cx.int("axis", 0), dims.len())?;
    for part in (5..cx.input_count()).step_by(3) {
        let other = cx.dims(part).ok().and_then(|other| other.get(axis)?.clone());
        dims[axis] = dims[axis].as_ref().and_then(|sum| sum.plus(other.as_ref()?));
    }
    cx.set(0, dtype, Some(dims));
    Ok(())
}
