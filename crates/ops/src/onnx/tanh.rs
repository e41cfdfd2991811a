//! [`Tanh`](https://onnx.ai/onnx/operators/onnx__Tanh.html): the hyperbolic tangent of each element.

crate::unary::of_reals! { "Tanh", since 1: v => v.tanh() }
