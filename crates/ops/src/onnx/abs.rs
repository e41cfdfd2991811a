//! [`Abs`](https://onnx.ai/onnx/operators/onnx__Abs.html): the magnitude of each element; the least integer stays as
//! it is.

crate::unary::of_numbers! { "Abs", since 1: v => v.magnitude() }
