//! [`LSTM`](https://onnx.ai/onnx/operators/onnx__LSTM.html): a recurrent layer with a cell state, in the order of gates
//! input, output, forget, cell.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::recurrent::{self, ATTRIBUTES, Activation, Cell, Recurrent, StepAt, clipped, per_direction};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LSTM",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| {
        let own = if cx.opset < 7 { &["input_forget", "output_sequence"][..] } else { &["input_forget"] };
        only(cx, &[&ATTRIBUTES[..], own].concat())?;
        Ok(Box::new(Lstm::new(cx)?))
    },
};

/// The node's attributes.
pub(crate) struct Lstm {
    pub(crate) common: Recurrent,
    /// Whether the forget gate is one minus the input gate.
    pub(crate) coupled: bool,
}

impl Lstm {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Result<Lstm, BuildError> {
        let defaults = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];
        let coupled = cx.node.attributes.int_or("input_forget", 0)? != 0;
        Ok(Lstm { common: Recurrent::parse(cx, &defaults)?, coupled })
    }
}

impl Kernel for Lstm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => run::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

struct LstmCell<'a, W> {
    node: &'a Lstm,
    n: usize,
    batch: usize,
    /// What gates see of the state's side: [directions, 4 * hidden].
    bias: Vec<W>,
    /// What gates see of the cell: [directions, 3 * hidden].
    peepholes: Vec<W>,
    cells: Vec<W>,
}

impl<W: Wide> Cell<W> for LstmCell<'_, W> {
    fn step(&mut self, at: StepAt<'_>, x: &[W], h: &[W], state: &mut [W]) {
        let n = self.n;
        let [f, g, last] = at.functions else { return };
        let clip = self.node.common.clip;
        let cells = &mut self.cells[(at.direction * self.batch + at.sequence) * n..][..n];
        let bias = &self.bias[at.direction * 4 * n..][..4 * n];
        let peep = &self.peepholes[at.direction * 3 * n..][..3 * n];
        for k in 0..n {
            let gate = |i: usize| x[i * n + k] + h[i * n + k] + bias[i * n + k];
            let input = f.of(clipped(gate(0) + peep[k] * cells[k], clip));
            let forget = match self.node.coupled {
                true => W::ONE - input,
                false => f.of(clipped(gate(2) + peep[2 * n + k] * cells[k], clip)),
            };
            let candidate = g.of(clipped(gate(3), clip));
            let cell = forget * cells[k] + input * candidate;
            cells[k] = cell;
            let output = f.of(clipped(gate(1) + peep[n + k] * cell, clip));
            state[k] = output * last.of(cell);
        }
    }
}

/// Runs with the weights already read, computing in `W`.
pub(crate) fn run_with<T: Real, W: Wide>(
    cx: &mut RunCx<'_>,
    node: &Lstm,
    extents: &recurrent::Extents,
    x: &[W],
    (products, b): (&dyn recurrent::Products<W>, &[W]),
) -> Result<(), KernelError> {
    let (n, d) = (extents.hidden, extents.directions);
    let widen =
        |list: Vec<T::Wide>| -> Vec<W> { list.into_iter().map(|v| W::from_f64(v.to_f64())).collect() };
    let narrow =
        |list: &[W]| -> Vec<T::Wide> { list.iter().map(|v| T::Wide::from_f64(v.to_f64())).collect() };
    let mut hidden = widen(extents.state::<T>(cx, 5)?);
    let bias = b.chunks_exact((4 * n).max(1)).skip(1).step_by(2).flatten().copied().collect();
    let mut cell = LstmCell {
        node,
        n,
        batch: extents.batch,
        bias,
        peepholes: widen(per_direction::<T>(cx, 7, d, 3 * n, "P is [directions, 3 * hidden]")?),
        cells: widen(extents.state::<T>(cx, 6)?),
    };
    let all = recurrent::run(cx, &node.common, extents, x, (products, b), &mut hidden, &mut cell)?;
    extents.finish::<T>(cx, &narrow(&all), &[&narrow(&hidden), &narrow(&cell.cells)])
}

fn run<T: Real>(cx: &mut RunCx<'_>, node: &Lstm) -> Result<(), KernelError> {
    let (extents, x, weights) = recurrent::weights::<T>(cx, &node.common, 4)?;
    run_with::<T, T::Wide>(cx, node, &extents, &x, (&weights, &weights.b))
}
