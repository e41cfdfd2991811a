//! [`Floor`](https://onnx.ai/onnx/operators/onnx__Floor.html): the greatest integer that is no greater than each
//! element.

crate::unary::of_reals! { "Floor", since 1: v => v.floor() }
