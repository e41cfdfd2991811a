//! [`And`](https://onnx.ai/onnx/operators/onnx__And.html): whether both hold, broadcast.

crate::binary::logic! { "And", since 7: a, b => a & b }
