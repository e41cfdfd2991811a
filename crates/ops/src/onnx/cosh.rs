//! [`Cosh`](https://onnx.ai/onnx/operators/onnx__Cosh.html): the hyperbolic cosine of each element.

crate::unary::of_reals! { "Cosh", since 9: v => v.cosh() }
