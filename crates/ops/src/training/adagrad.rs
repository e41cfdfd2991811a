//! [`Adagrad`](https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adagrad.html): one step of the ADAGRAD
//! optimizer.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::training::{finish, inputs};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.preview.training",
    op: "Adagrad",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Adagrad {
    decay: f64,
    epsilon: f64,
    norm: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["decay_factor", "epsilon", "norm_coefficient"])?;
    let real = |name, default| cx.node.attributes.float_or(name, default).map(f64::from);
    Ok(Box::new(Adagrad {
        decay: real("decay_factor", 0.0)?,
        epsilon: real("epsilon", 1e-6)?,
        norm: real("norm_coefficient", 0.0)?,
    }))
}

impl Kernel for Adagrad {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (rate, count, mut trained) = inputs(cx, 3)?;
        let rate = rate / (1.0 + count as f64 * self.decay);
        for one in &mut trained {
            let [x, g, h] = &mut one.values[..] else { continue };
            for ((x, &g), h) in x.iter_mut().zip(&*g).zip(h) {
                let g = self.norm * *x + g;
                *h += g * g;
                *x -= rate * g / (h.sqrt() + self.epsilon);
            }
        }
        finish(cx, &trained, &[0, 2])
    }
}
