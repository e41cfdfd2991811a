//! [`Min`](https://onnx.ai/onnx/operators/onnx__Min.html): the smallest of the inputs at each place, broadcast; NaN
//! where one is NaN.

crate::variadic::folded! { "Min", since 6: a, b => a.smaller(b), v, _count => v }
