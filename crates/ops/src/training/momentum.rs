//! [`Momentum`](https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Momentum.html): one step of gradient
//! descent with momentum.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::training::{finish, inputs};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.preview.training",
    op: "Momentum",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Momentum {
    alpha: f64,
    beta: f64,
    norm: f64,
    nesterov: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha", "beta", "mode", "norm_coefficient"])?;
    let attributes = &cx.node.attributes;
    let nesterov = match attributes.string("mode")? {
        b"standard" => false,
        b"nesterov" => true,
        other => {
            return Err(unsupported("mode", String::from_utf8_lossy(other), "standard and nesterov are"));
        }
    };
    let real = |name| attributes.float(name).map(f64::from);
    Ok(Box::new(Momentum {
        alpha: real("alpha")?,
        beta: real("beta")?,
        norm: real("norm_coefficient")?,
        nesterov,
    }))
}

impl Kernel for Momentum {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (rate, count, mut trained) = inputs(cx, 3)?;
        // The first update takes the whole gradient.
        let beta = if count > 0 { self.beta } else { 1.0 };
        for one in &mut trained {
            let [x, g, v] = &mut one.values[..] else { continue };
            for ((x, &g), v) in x.iter_mut().zip(&*g).zip(v) {
                let g = self.norm * *x + g;
                *v = self.alpha * *v + beta * g;
                *x -= rate * if self.nesterov { g + self.alpha * *v } else { *v };
            }
        }
        finish(cx, &trained, &[0, 2])
    }
}
