//! [`GlobalMaxPool`](https://onnx.ai/onnx/operators/onnx__GlobalMaxPool.html): the greatest element over all spatial axes.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::global_pool;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GlobalMaxPool",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(|cx| global_pool::run(cx, |x, _| x.fold(f64::NEG_INFINITY, f64::max)))))
}
