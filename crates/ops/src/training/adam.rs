//! [`Adam`](https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adam.html): one step of the Adam optimizer.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::training::{finish, inputs};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.preview.training",
    op: "Adam",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Adam {
    alpha: f64,
    beta: f64,
    epsilon: f64,
    norm: f64,
    norm_post: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post"])?;
    let real = |name, default| cx.node.attributes.float_or(name, default).map(f64::from);
    Ok(Box::new(Adam {
        alpha: real("alpha", 0.9)?,
        beta: real("beta", 0.999)?,
        epsilon: real("epsilon", 1e-6)?,
        norm: real("norm_coefficient", 0.0)?,
        norm_post: real("norm_coefficient_post", 0.0)?,
    }))
}

impl Kernel for Adam {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (rate, count, mut trained) = inputs(cx, 4)?;
        let count = count as f64;
        let rate = match count > 0.0 {
            true => rate * (1.0 - self.beta.powf(count)).sqrt() / (1.0 - self.alpha.powf(count)),
            false => rate,
        };
        for one in &mut trained {
            let [x, g, v, h] = &mut one.values[..] else { continue };
            for (((x, &g), v), h) in x.iter_mut().zip(&*g).zip(v).zip(h) {
                let g = self.norm * *x + g;
                *v = self.alpha * *v + (1.0 - self.alpha) * g;
                *h = self.beta * *h + (1.0 - self.beta) * g * g;
                *x = (1.0 - self.norm_post) * (*x - rate * *v / (h.sqrt() + self.epsilon));
            }
        }
        finish(cx, &trained, &[0, 2, 3])
    }
}
