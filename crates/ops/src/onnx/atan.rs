//! [`Atan`](https://onnx.ai/onnx/operators/onnx__Atan.html): the arctangent of each element.

crate::unary::of_reals! { "Atan", since 7: v => v.atan() }
