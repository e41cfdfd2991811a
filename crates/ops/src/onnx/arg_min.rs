//! [`ArgMin`](https://onnx.ai/onnx/operators/onnx__ArgMin.html): where the smallest element along an axis stands, the first or the last of
//! equal ones; NaN is found before numbers.

use heirloom_runtime::KernelSpec;

use crate::arg_extreme::build;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ArgMin",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_number),
    build: |cx| build(cx, false),
};
