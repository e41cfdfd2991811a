//! [`BitwiseOr`](https://onnx.ai/onnx/operators/onnx__BitwiseOr.html): the bits that one of two integers has,
//! broadcast.

crate::binary::bits! { "BitwiseOr", since 18: a, b => a | b }
