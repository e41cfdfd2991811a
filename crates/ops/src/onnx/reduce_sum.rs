//! [`ReduceSum`](https://onnx.ai/onnx/operators/onnx__ReduceSum.html): the sum over some axes, by default all.

crate::reduce::reduction! {
    "ReduceSum", axes are an input since 13,
    start: W::ZERO,
    push: sum, v => sum.plus(v),
    join: a, b => a.plus(b),
    finish: sum, _count => sum
}
