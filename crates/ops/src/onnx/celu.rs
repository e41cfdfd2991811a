//! [`Celu`](https://onnx.ai/onnx/operators/onnx__Celu.html): `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))` of
//! each element.

crate::unary::of_reals! {
    "Celu", since 12, alpha = 1.0:
    v => v.larger(W::ZERO) + (alpha * (v / alpha).exp_m1()).smaller(W::ZERO)
}
