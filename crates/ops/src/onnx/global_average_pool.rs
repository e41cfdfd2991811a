//! [`GlobalAveragePool`](https://onnx.ai/onnx/operators/onnx__GlobalAveragePool.html): the mean over all spatial axes.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::global_pool;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GlobalAveragePool",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(|cx| global_pool::run(cx, |x, count| x.sum::<f64>() / count as f64))))
}
