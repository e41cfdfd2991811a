//! `SkipSimplifiedLayerNormalization`: the sum of two inputs (and a bias), divided by its root mean square.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::skip_norm::{self, Places};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "SkipSimplifiedLayerNormalization",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SkipSimplifiedLayerNormalization {
    epsilon: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["epsilon"])?;
    Ok(Box::new(SkipSimplifiedLayerNormalization {
        epsilon: f64::from(cx.node.attributes.float_or("epsilon", 1e-12)?),
    }))
}

impl Kernel for SkipSimplifiedLayerNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        skip_norm::run(cx, &Places { beta: None, bias: 3 }, self.epsilon, false)
    }
}
