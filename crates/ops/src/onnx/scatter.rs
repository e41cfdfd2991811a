//! [`Scatter`](https://onnx.ai/onnx/operators/onnx__Scatter.html): data with each update written to its own place but for
//! one axis, where the index says; negative ones count from the end.

use heirloom_runtime::KernelSpec;

/// Version 11 renamed it to `ScatterElements`.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Scatter",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: super::scatter_elements::build,
};
