//! [`Acosh`](https://onnx.ai/onnx/operators/onnx__Acosh.html): the inverse hyperbolic cosine of each element.

crate::unary::of_reals! { "Acosh", since 9: v => v.acosh() }
