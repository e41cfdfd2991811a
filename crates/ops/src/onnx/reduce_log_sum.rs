//! [`ReduceLogSum`](https://onnx.ai/onnx/operators/onnx__ReduceLogSum.html): the logarithm of the sum over some axes,
//! by default all.

crate::reduce::reduction! {
    "ReduceLogSum", axes are an input since 18,
    start: W::ZERO,
    push: sum, v => sum.plus(v),
    join: a, b => a.plus(b),
    finish: sum, _count => crate::reduce::through_f64(sum, f64::ln)
}
