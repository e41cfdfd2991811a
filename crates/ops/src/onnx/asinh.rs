//! [`Asinh`](https://onnx.ai/onnx/operators/onnx__Asinh.html): the inverse hyperbolic sine of each element.

crate::unary::of_reals! { "Asinh", since 9: v => v.asinh() }
