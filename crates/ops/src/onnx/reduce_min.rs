//! [`ReduceMin`](https://onnx.ai/onnx/operators/onnx__ReduceMin.html): the smallest element over some axes, by
//! default all; NaN where one is NaN.

crate::reduce::reduction! {
    "ReduceMin", axes are an input since 18,
    start: W::GREATEST,
    push: sum, v => sum.smaller(v),
    join: a, b => a.smaller(b),
    finish: sum, _count => sum,
    bool: (1, |a, b| a & b)
}
