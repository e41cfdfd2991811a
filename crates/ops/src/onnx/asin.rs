//! [`Asin`](https://onnx.ai/onnx/operators/onnx__Asin.html): the arcsine of each element.

crate::unary::of_reals! { "Asin", since 7: v => v.asin() }
