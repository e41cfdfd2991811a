//! [`ReduceL1`](https://onnx.ai/onnx/operators/onnx__ReduceL1.html): the sum of magnitudes over some axes, by default
//! all.

crate::reduce::reduction! {
    "ReduceL1", axes are an input since 18,
    start: W::ZERO,
    push: sum, v => sum.plus(v.magnitude()),
    join: a, b => a.plus(b),
    finish: sum, _count => sum
}
