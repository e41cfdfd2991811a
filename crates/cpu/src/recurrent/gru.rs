//! The GRU layer.

use heirloom_ops::recurrent::{Activation, Recurrent, per_direction_f32};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;

use super::{Call, cell, constant_cube, usual};
use crate::fallback::Portable;
use crate::gemm::Start;
use crate::lanes;
use crate::panels::Panels;

const DEFAULTS: [Activation; 2] = [Activation::Sigmoid, Activation::Tanh];

/// ONNX `GRU` of FLOAT with the usual activations.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GRU",
    versions: (7, i64::MAX),
    rank: 10,
    accepts: |cx| usual(cx, &DEFAULTS),
    build: |cx| Ok(Box::new(Gru::new(cx)?)),
};

struct Gru {
    node: Recurrent,
    /// Whether the reset gate acts on the product with the state.
    after: bool,
    isa: Isa,
    portable: Portable,
    w: Panels,
    /// R's rows of the update and reset gates, and of the hidden gate.
    gates: Panels,
    candidate: Panels,
}

impl Gru {
    fn new(cx: &BuildCx<'_>) -> Result<Gru, BuildError> {
        let after = cx.node.attributes.int_or("linear_before_reset", 0)? != 0;
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        let node = Recurrent::parse(cx, &DEFAULTS)?;
        let (w, gates, candidate) = (Panels::of(1), Panels::of(2), Panels::of(2));
        Ok(Gru { node, after, isa, portable, w, gates, candidate })
    }
}

impl Kernel for Gru {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        if let Some([directions, width, depth]) = constant_cube(cx, 1) {
            self.w.claim(cx, "cpu.f32.panels.transposed", directions, depth, width);
        }
        if let Some([directions, width, depth]) = constant_cube(cx, 2) {
            self.gates.claim(cx, "cpu.f32.panels.gru.gates", directions, depth, width / 3 * 2);
            self.candidate.claim(cx, "cpu.f32.panels.gru.candidate", directions, depth, width / 3);
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let Some(call) = Call::new(cx, &self.node, 3, self.isa)? else { return self.portable.run(cx) };
        let (e, width) = (&call.extents, call.width);
        let (n, batch) = (e.hidden, e.batch);
        let biases = per_direction_f32(cx, 3, e.directions, 2 * width, "B is [directions, 6 * hidden]")?;
        // The state's bias of the candidate is added on its own side, where the reset gate may act on it.
        let mut inputs = call.inputs(cx, &self.w, |d| {
            let (own, state) = biases[d * 2 * width..][..2 * width].split_at(width);
            own.iter().zip(state).enumerate().map(|(i, (a, b))| if i < 2 * n { a + b } else { *a }).collect()
        })?;
        let (gate_rows, candidate_rows) =
            (call.states(cx, &self.gates, 0..2 * n)?, call.states(cx, &self.candidate, 2 * n..width)?);
        let mut hidden = e.state_f32(cx, 5)?;
        let mut all = vec![0.0; e.steps * batch * e.directions * n];
        let (mut kept, mut scaled) = (vec![0.0; batch * n], vec![0.0; batch * n]);
        for (d, (_, reverse)) in self.node.directions.iter().enumerate() {
            let (gate_rows, candidate_rows) = (gate_rows.direction(d), candidate_rows.direction(d));
            let bias = Start::Column(&biases[d * 2 * width + width + 2 * n..][..n]);
            let hidden = &mut hidden[d * batch * n..][..batch * n];
            for step in 0..e.steps {
                let time = if *reverse { e.steps - 1 - step } else { step };
                let gates = &mut inputs.parts[d][time * batch * width..][..batch * width];
                call.step(cx, hidden, gate_rows, 2 * n, Start::Out, (gates, width))?;
                for b in 0..batch {
                    let (gates, kept) = (&mut gates[b * width..][..width], &mut kept[b * n..][..n]);
                    cell::gru_gates(self.isa, gates, &hidden[b * n..][..n], kept);
                }
                let from = if self.after { &*hidden } else { &kept };
                call.step(cx, from, candidate_rows, n, bias, (&mut scaled, n))?;
                for b in 0..batch {
                    let gates = &gates[b * width..][..width];
                    cell::gru_state(
                        self.isa,
                        gates,
                        &scaled[b * n..][..n],
                        self.after,
                        &mut hidden[b * n..][..n],
                    );
                }
                let at = e.all_at(time, d, 0);
                all[at..at + batch * n].iter_mut().zip(&*hidden).for_each(|(a, &h)| *a = h);
            }
        }
        e.finish_f32(cx, &all, &[&hidden])
    }
}
