//! [`ReduceProd`](https://onnx.ai/onnx/operators/onnx__ReduceProd.html): the product over some axes, by default all.

crate::reduce::reduction! {
    "ReduceProd", axes are an input since 18,
    start: W::ONE,
    push: sum, v => sum.times(v),
    join: a, b => a.times(b),
    finish: sum, _count => sum
}
