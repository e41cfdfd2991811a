//! [`Mean`](https://onnx.ai/onnx/operators/onnx__Mean.html): the mean of the inputs at each place, broadcast.

crate::variadic::folded! { "Mean", since 6: a, b => a.plus(b), v, count => W::from_f64(v.to_f64() / count as f64) }
