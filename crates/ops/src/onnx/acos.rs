//! [`Acos`](https://onnx.ai/onnx/operators/onnx__Acos.html): the arccosine of each element.

crate::unary::of_reals! { "Acos", since 7: v => v.acos() }
