//! `SkipLayerNormalization`: the sum of two inputs (and a bias), normalized.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::skip_norm::{self, Places};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "SkipLayerNormalization",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SkipLayerNormalization {
    epsilon: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["epsilon"])?;
    Ok(Box::new(SkipLayerNormalization {
        epsilon: f64::from(cx.node.attributes.float_or("epsilon", 1e-12)?),
    }))
}

impl Kernel for SkipLayerNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        skip_norm::run(cx, &Places { beta: Some(3), bias: 4 }, self.epsilon, true)
    }
}
