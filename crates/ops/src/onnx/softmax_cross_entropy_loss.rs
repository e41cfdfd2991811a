//! [`SoftmaxCrossEntropyLoss`](https://onnx.ai/onnx/operators/onnx__SoftmaxCrossEntropyLoss.html): the negative
//! log-likelihood loss of the softmax of scores over the classes (axis 1).

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::negative_log_likelihood_loss::Loss;
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SoftmaxCrossEntropyLoss",
    versions: (12, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SoftmaxCrossEntropyLoss(Loss);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(SoftmaxCrossEntropyLoss(Loss::parse(cx)?)))
}

impl Kernel for SoftmaxCrossEntropyLoss {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, shape, mut x) = input(cx, 0)?;
        let &[_, classes, ref places @ ..] = &*shape else {
            return Err(misfit("the scores are [batch, classes, places…]", &[&shape]));
        };
        let plane: usize = places.iter().product();
        let mut watch = cx.cancel().watch();
        for block in x.chunks_exact_mut((classes * plane).max(1)) {
            for place in 0..plane {
                watch.pass(4 * classes)?;
                let lane = || (place..classes * plane).step_by(plane);
                let greatest = lane().map(|at| block[at]).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = lane().map(|at| (block[at] - greatest).exp()).sum();
                let shift = greatest + sum.ln();
                lane().for_each(|at| block[at] -= shift);
            }
        }
        let (loss_shape, losses) = self.0.of(cx, &shape, &x)?;
        let out = written(cx, dtype, &loss_shape, &losses)?;
        cx.set(0, out);
        if cx.wants(1) {
            let out = written(cx, dtype, &shape, &x)?;
            cx.set(1, out);
        }
        Ok(())
    }
}
