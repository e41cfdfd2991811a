//! [`BlackmanWindow`](https://onnx.ai/onnx/operators/onnx__BlackmanWindow.html): the Blackman window.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::cosine_window;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "BlackmanWindow",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    cosine_window::build(cx, [0.42, 0.5, 0.08])
}
