//! [`LeakyRelu`](https://onnx.ai/onnx/operators/onnx__LeakyRelu.html): `alpha * x` of negative elements, others as
//! they are.

crate::unary::of_reals! {
    "LeakyRelu", since 1, alpha = 0.01:
    v => if v < W::ZERO { alpha * v } else { v }
}
