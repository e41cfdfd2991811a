//! [`Exp`](https://onnx.ai/onnx/operators/onnx__Exp.html): e to the power of each element.

crate::unary::of_reals! { "Exp", since 1: v => v.exp() }
