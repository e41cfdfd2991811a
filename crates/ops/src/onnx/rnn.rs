//! [`RNN`](https://onnx.ai/onnx/operators/onnx__RNN.html): a simple recurrent layer,
//! `h = f(x W + h R + b)`.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::recurrent::{self, ATTRIBUTES, Activation, Cell, Recurrent, StepAt, clipped};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RNN",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Rnn {
    common: Recurrent,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let own = if cx.opset < 7 { &["output_sequence"][..] } else { &[] };
    only(cx, &[&ATTRIBUTES[..], own].concat())?;
    Ok(Box::new(Rnn { common: Recurrent::parse(cx, &[Activation::Tanh])? }))
}

impl Kernel for Rnn {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => run::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

struct RnnCell<W> {
    n: usize,
    clip: Option<f64>,
    bias: Vec<W>,
}

impl<W: Wide> Cell<W> for RnnCell<W> {
    fn step(&mut self, at: StepAt<'_>, x: &[W], h: &[W], state: &mut [W]) {
        let [f] = at.functions else { return };
        let bias = &self.bias[at.direction * self.n..][..self.n];
        for (k, s) in state.iter_mut().enumerate() {
            *s = f.of(clipped(x[k] + h[k] + bias[k], self.clip));
        }
    }
}

fn run<T: Real>(cx: &mut RunCx<'_>, node: &Rnn) -> Result<(), KernelError> {
    let (extents, x, weights) = recurrent::weights::<T>(cx, &node.common, 1)?;
    let n = extents.hidden;
    let mut hidden = extents.state::<T>(cx, 5)?;
    let bias = weights.b.chunks_exact(n.max(1)).skip(1).step_by(2).flatten().copied().collect();
    let mut cell = RnnCell { n, clip: node.common.clip, bias };
    let all = recurrent::run(cx, &node.common, &extents, &x, (&weights, &weights.b), &mut hidden, &mut cell)?;
    extents.finish::<T>(cx, &all, &[&hidden])
}
