//! [`RandomUniformLike`](https://onnx.ai/onnx/operators/onnx__RandomUniformLike.html): `RandomUniform` in the shape of the input.

use heirloom_runtime::KernelSpec;

use crate::distribution::{Distribution, build};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RandomUniformLike",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| build(cx, Distribution::Uniform, true),
};
