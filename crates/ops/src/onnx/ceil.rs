//! [`Ceil`](https://onnx.ai/onnx/operators/onnx__Ceil.html): the least integer that is no less than each element.

crate::unary::of_reals! { "Ceil", since 1: v => v.ceil() }
