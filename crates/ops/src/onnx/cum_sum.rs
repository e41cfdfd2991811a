//! [`CumSum`](https://onnx.ai/onnx/operators/onnx__CumSum.html): running sums along an axis, each with or without its own element.

use heirloom_runtime::KernelSpec;

use crate::cumulate::{What, build};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "CumSum",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_number),
    build: |cx| build(cx, What::Sums),
};
