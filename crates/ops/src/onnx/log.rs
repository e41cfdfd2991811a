//! [`Log`](https://onnx.ai/onnx/operators/onnx__Log.html): the natural logarithm of each element.

crate::unary::of_reals! { "Log", since 1: v => v.ln() }
