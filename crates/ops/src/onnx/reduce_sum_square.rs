//! [`ReduceSumSquare`](https://onnx.ai/onnx/operators/onnx__ReduceSumSquare.html): the sum of squares over some axes,
//! by default all.

crate::reduce::reduction! {
    "ReduceSumSquare", axes are an input since 18,
    start: W::ZERO,
    push: sum, v => sum.plus(v.times(v)),
    join: a, b => a.plus(b),
    finish: sum, _count => sum
}
