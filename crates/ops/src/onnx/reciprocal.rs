//! [`Reciprocal`](https://onnx.ai/onnx/operators/onnx__Reciprocal.html): `1 / x` of each element.

crate::unary::of_reals! { "Reciprocal", since 1: v => W::ONE / v }
