//! [`ReduceL2`](https://onnx.ai/onnx/operators/onnx__ReduceL2.html): the root of the sum of squares over some axes,
//! by default all.

crate::reduce::reduction! {
    "ReduceL2", axes are an input since 18,
    start: W::ZERO,
    push: sum, v => sum.plus(v.times(v)),
    join: a, b => a.plus(b),
    finish: sum, _count => crate::reduce::through_f64(sum, f64::sqrt)
}
