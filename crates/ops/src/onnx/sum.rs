//! [`Sum`](https://onnx.ai/onnx/operators/onnx__Sum.html): the sum of the inputs at each place, broadcast.

crate::variadic::folded! { "Sum", since 6: a, b => a.plus(b), v, _count => v }
