//! [`Tan`](https://onnx.ai/onnx/operators/onnx__Tan.html): the tangent of each element.

crate::unary::of_reals! { "Tan", since 7: v => v.tan() }
