//! [`BitwiseAnd`](https://onnx.ai/onnx/operators/onnx__BitwiseAnd.html): the bits that both integers have, broadcast.

crate::binary::bits! { "BitwiseAnd", since 18: a, b => a & b }
