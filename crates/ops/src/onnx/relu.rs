//! [`Relu`](https://onnx.ai/onnx/operators/onnx__Relu.html): negative elements become 0.

crate::unary::of_numbers! { "Relu", since 1: v => if v < W::ZERO { W::ZERO } else { v } }
