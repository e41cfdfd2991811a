//! [`ReduceMax`](https://onnx.ai/onnx/operators/onnx__ReduceMax.html): the greatest element over some axes, by
//! default all; NaN where one is NaN.

crate::reduce::reduction! {
    "ReduceMax", axes are an input since 18,
    start: W::LOWEST,
    push: sum, v => sum.larger(v),
    join: a, b => a.larger(b),
    finish: sum, _count => sum,
    bool: (0, |a, b| a | b)
}
