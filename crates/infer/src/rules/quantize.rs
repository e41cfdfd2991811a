//! Quantization.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule};
use crate::fact::TensorFact;

pub(super) const RULES: &[Rule] =
    &[("DequantizeLinear", dequantize), ("DynamicQuantizeLinear", dynamic), ("QuantizeLinear", quantize)];

pub(super) const MICROSOFT: &[Rule] = &[
    ("DequantizeLinear", dequantize),
    ("QLinearAdd", q_linear_binary),
    ("QLinearLeakyRelu", same),
    ("QLinearMul", q_linear_binary),
    ("QLinearSigmoid", same),
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
