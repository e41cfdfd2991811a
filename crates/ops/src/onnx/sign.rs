//! [`Sign`](https://onnx.ai/onnx/operators/onnx__Sign.html): -1, 0 or 1 as each element is negative, zero or
//! positive; NaN stays.

crate::unary::of_numbers! { "Sign", since 9: v => v.sign() }
