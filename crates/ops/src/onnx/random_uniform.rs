//! [`RandomUniform`](https://onnx.ai/onnx/operators/onnx__RandomUniform.html): random numbers between `low` and `high`; a seed gives the same ones in each call.

use heirloom_runtime::KernelSpec;

use crate::distribution::{Distribution, build};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RandomUniform",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| build(cx, Distribution::Uniform, false),
};
