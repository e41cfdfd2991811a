//! [`Elu`](https://onnx.ai/onnx/operators/onnx__Elu.html): `alpha * (exp(x) - 1)` of negative elements, others as
//! they are.

crate::unary::of_reals! {
    "Elu", since 1, alpha = 1.0:
    v => if v < W::ZERO { alpha * v.exp_m1() } else { v }
}
