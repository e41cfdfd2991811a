//! [`Selu`](https://onnx.ai/onnx/operators/onnx__Selu.html): `gamma * x` of positive elements, `gamma * alpha *
//! (exp(x) - 1)` of others.

crate::unary::of_reals! {
    "Selu", since 1, alpha = 1.673_263_2, gamma = 1.050_701:
    v => gamma * if v > W::ZERO { v } else { alpha * v.exp_m1() }
}
