//! [`Max`](https://onnx.ai/onnx/operators/onnx__Max.html): the greatest of the inputs at each place, broadcast; NaN
//! where one is NaN.

crate::variadic::folded! { "Max", since 6: a, b => a.larger(b), v, _count => v }
