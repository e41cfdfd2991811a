//! [`LessOrEqual`](https://onnx.ai/onnx/operators/onnx__LessOrEqual.html): whether `A <= B`, broadcast.

crate::binary::comparison! { "LessOrEqual", since 12: a, b => a <= b }
