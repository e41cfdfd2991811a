//! [`GRU`](https://onnx.ai/onnx/operators/onnx__GRU.html): a gated recurrent layer, in the order of gates update, reset,
//! hidden.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::product::dot;
use crate::real::Real;
use crate::real::num::Wide;
use crate::recurrent::{self, ATTRIBUTES, Activation, Cell, Recurrent, StepAt, clipped};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GRU",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Gru {
    common: Recurrent,
    /// Whether the reset gate acts on the product with the state, not on the state.
    reset_after: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let own = match cx.opset {
        ..3 => &["output_sequence"][..],
        3..7 => &["linear_before_reset", "output_sequence"],
        _ => &["linear_before_reset"],
    };
    only(cx, &[&ATTRIBUTES[..], own].concat())?;
    let reset_after = cx.node.attributes.int_or("linear_before_reset", 0)? != 0;
    Ok(Box::new(Gru { common: Recurrent::parse(cx, &[Activation::Sigmoid, Activation::Tanh])?, reset_after }))
}

impl Kernel for Gru {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => run::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

struct GruCell<'a, W> {
    node: &'a Gru,
    n: usize,
    /// The state's side: [directions, 3 * hidden].
    bias: Vec<W>,
    r: &'a [W],
}

impl<W: Wide> Cell<W> for GruCell<'_, W> {
    fn step(&mut self, at: StepAt<'_>, x: &[W], h: &[W], state: &mut [W]) {
        let n = self.n;
        let [f, g] = at.functions else { return };
        let clip = self.node.common.clip;
        let bias = &self.bias[at.direction * 3 * n..][..3 * n];
        let gate = |i: usize, k: usize| f.of(clipped(x[i * n + k] + h[i * n + k] + bias[i * n + k], clip));
        let resets: Vec<W> = (0..n).map(|k| gate(1, k)).collect();
        let hidden: Vec<W> = if self.node.reset_after {
            (0..n).map(|k| resets[k] * (h[2 * n + k] + bias[2 * n + k])).collect()
        } else {
            let kept: Vec<W> = resets.iter().zip(&*state).map(|(&r, &s)| r * s).collect();
            let rows = &self.r[(at.direction * 3 + 2) * n * n..][..n * n];
            (0..n).map(|k| dot(&kept, &rows[k * n..][..n]) + bias[2 * n + k]).collect()
        };
        for k in 0..n {
            let update = gate(0, k);
            let candidate = g.of(clipped(x[2 * n + k] + hidden[k], clip));
            state[k] = (W::ONE - update) * candidate + update * state[k];
        }
    }
}

fn run<T: Real>(cx: &mut RunCx<'_>, node: &Gru) -> Result<(), KernelError> {
    let (extents, x, weights) = recurrent::weights::<T>(cx, &node.common, 3)?;
    let n = extents.hidden;
    let mut hidden = extents.state::<T>(cx, 5)?;
    let bias = weights.b.chunks_exact((3 * n).max(1)).skip(1).step_by(2).flatten().copied().collect();
    let mut cell = GruCell { node, n, bias, r: &weights.r };
    let all = recurrent::run(cx, &node.common, &extents, &x, (&weights, &weights.b), &mut hidden, &mut cell)?;
    extents.finish::<T>(cx, &all, &[&hidden])
}
