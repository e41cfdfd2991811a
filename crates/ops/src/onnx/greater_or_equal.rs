//! [`GreaterOrEqual`](https://onnx.ai/onnx/operators/onnx__GreaterOrEqual.html): whether `A >= B`, broadcast.

crate::binary::comparison! { "GreaterOrEqual", since 12: a, b => a >= b }
