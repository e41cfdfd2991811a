//! [`Round`](https://onnx.ai/onnx/operators/onnx__Round.html): the integer nearest to each element, ties to even.

crate::unary::of_reals! { "Round", since 11: v => v.round_ties_even() }
