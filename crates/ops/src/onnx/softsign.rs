//! [`Softsign`](https://onnx.ai/onnx/operators/onnx__Softsign.html): `x / (1 + |x|)` of each element.

crate::unary::of_reals! { "Softsign", since 1: v => v / (W::ONE + v.abs()) }
