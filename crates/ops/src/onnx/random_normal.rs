//! [`RandomNormal`](https://onnx.ai/onnx/operators/onnx__RandomNormal.html): normally distributed random numbers; a seed gives the same ones in each call.

use heirloom_runtime::KernelSpec;

use crate::distribution::{Distribution, build};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RandomNormal",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| build(cx, Distribution::Normal, false),
};
