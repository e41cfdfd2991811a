//! [`Xor`](https://onnx.ai/onnx/operators/onnx__Xor.html): whether just one of two holds, broadcast.

crate::binary::logic! { "Xor", since 7: a, b => a ^ b }
