//! [`HardSwish`](https://onnx.ai/onnx/operators/onnx__HardSwish.html): `x * max(0, min(1, x / 6 + 1 / 2))` of each
//! element.

crate::unary::of_reals! {
    "HardSwish", since 14:
    v => v * (v / W::from_f64(6.0) + W::from_f64(0.5)).smaller(W::ONE).larger(W::ZERO)
}
