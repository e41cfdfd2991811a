//! [`Sinh`](https://onnx.ai/onnx/operators/onnx__Sinh.html): the hyperbolic sine of each element.

crate::unary::of_reals! { "Sinh", since 9: v => v.sinh() }
