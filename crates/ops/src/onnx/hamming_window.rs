//! [`HammingWindow`](https://onnx.ai/onnx/operators/onnx__HammingWindow.html): the Hamming window, with the
//! coefficients 25/46 and 21/46.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::cosine_window;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "HammingWindow",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    cosine_window::build(cx, [25.0 / 46.0, 21.0 / 46.0, 0.0])
}
