//! [`Greater`](https://onnx.ai/onnx/operators/onnx__Greater.html): whether `A > B`, broadcast.

crate::binary::comparison! { "Greater", since 7: a, b => a > b }
