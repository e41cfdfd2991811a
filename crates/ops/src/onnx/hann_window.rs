//! [`HannWindow`](https://onnx.ai/onnx/operators/onnx__HannWindow.html): the Hann window.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::cosine_window;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "HannWindow",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    cosine_window::build(cx, [0.5, 0.5, 0.0])
}
