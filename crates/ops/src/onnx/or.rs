//! [`Or`](https://onnx.ai/onnx/operators/onnx__Or.html): whether one of two holds, broadcast.

crate::binary::logic! { "Or", since 7: a, b => a | b }
