//! [`HardSigmoid`](https://onnx.ai/onnx/operators/onnx__HardSigmoid.html): `max(0, min(1, alpha * x + beta))` of each
//! element.

crate::unary::of_reals! {
    "HardSigmoid", since 1, alpha = 0.2, beta = 0.5:
    v => if v.is_nan() { v } else { (alpha * v + beta).smaller(W::ONE).larger(W::ZERO) }
}
