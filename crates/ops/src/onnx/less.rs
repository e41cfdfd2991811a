//! [`Less`](https://onnx.ai/onnx/operators/onnx__Less.html): whether `A < B`, broadcast.

crate::binary::comparison! { "Less", since 7: a, b => a < b }
