//! [`Atanh`](https://onnx.ai/onnx/operators/onnx__Atanh.html): the inverse hyperbolic tangent of each element.

crate::unary::of_reals! { "Atanh", since 9: v => v.atanh() }
