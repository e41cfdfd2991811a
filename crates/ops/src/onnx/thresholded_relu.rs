//! [`ThresholdedRelu`](https://onnx.ai/onnx/operators/onnx__ThresholdedRelu.html): elements greater than `alpha` as
//! they are, others 0.

crate::unary::of_reals! {
    "ThresholdedRelu", since 10, alpha = 1.0:
    v => if v > alpha || v.is_nan() { v } else { W::ZERO }
}
