//! [`GlobalLpPool`](https://onnx.ai/onnx/operators/onnx__GlobalLpPool.html): the Lp norm over all spatial axes.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::lp_pool::{norm, p_of};
use crate::attributes::only;
use crate::global_pool;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GlobalLpPool",
    versions: (2, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct GlobalLpPool {
    p: i32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["p"])?;
    Ok(Box::new(GlobalLpPool { p: p_of(cx)? }))
}

impl Kernel for GlobalLpPool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        global_pool::run(cx, |x, _| norm(x, self.p))
    }
}
