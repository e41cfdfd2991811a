//! [`BitwiseXor`](https://onnx.ai/onnx/operators/onnx__BitwiseXor.html): the bits that just one of two integers has,
//! broadcast.

crate::binary::bits! { "BitwiseXor", since 18: a, b => a ^ b }
