//! [`Mish`](https://onnx.ai/onnx/operators/onnx__Mish.html): `x * tanh(ln(1 + exp(x)))` of each element.

use crate::real::softplus;

crate::unary::of_reals! { "Mish", since 18: v => v * softplus(v).tanh() }
