//! [`Softplus`](https://onnx.ai/onnx/operators/onnx__Softplus.html): `ln(1 + exp(x))` of each element.

use crate::real::softplus;

crate::unary::of_reals! { "Softplus", since 1: v => softplus(v) }
