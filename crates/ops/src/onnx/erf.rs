//! [`Erf`](https://onnx.ai/onnx/operators/onnx__Erf.html): the error function of each element.

crate::unary::of_reals! { "Erf", since 9: v => v.error_function() }
