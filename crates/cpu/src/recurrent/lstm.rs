//! The LSTM layer.

use heirloom_ops::recurrent::{Activation, Recurrent};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;

use super::{Call, cell, constant_cube, usual};
use crate::fallback::Portable;
use crate::gemm::Start;
use crate::lanes;
use crate::panels::Panels;

const DEFAULTS: [Activation; 3] = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];

/// ONNX `LSTM` of FLOAT with the usual activations.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LSTM",
    versions: (7, i64::MAX),
    rank: 10,
    accepts: |cx| {
        usual(cx, &DEFAULTS) && cx.node.attributes.int_or("input_forget", 0).is_ok_and(|coupled| coupled == 0)
    },
    build: |cx| Ok(Box::new(Lstm::new(cx)?)),
};

struct Lstm {
    node: Recurrent,
    isa: Isa,
    portable: Portable,
    w: Panels,
    r: Panels,
}

impl Lstm {
    fn new(cx: &BuildCx<'_>) -> Result<Lstm, BuildError> {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        Ok(Lstm { node: Recurrent::parse(cx, &DEFAULTS)?, isa, portable, w: Panels::of(1), r: Panels::of(2) })
    }
}

impl Kernel for Lstm {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        for (index, panels) in [(1, &mut self.w), (2, &mut self.r)] {
            if let Some([directions, width, depth]) = constant_cube(cx, index) {
                panels.claim(cx, "cpu.f32.panels.transposed", directions, depth, width);
            }
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let Some(call) = Call::new(cx, &self.node, 4, self.isa)? else { return self.portable.run(cx) };
        let (e, width) = (&call.extents, call.width);
        let (n, batch) = (e.hidden, e.batch);
        let biases = heirloom_ops::recurrent::per_direction_f32(
            cx,
            3,
            e.directions,
            2 * width,
            "B is [directions, 8 * hidden]",
        )?;
        let peepholes = match cx.opt_tensor(7)? {
            Some(_) => heirloom_ops::recurrent::per_direction_f32(
                cx,
                7,
                e.directions,
                3 * n,
                "P is [directions, 3 * hidden]",
            )?,
            None => Vec::new(),
        };
        let mut inputs = call.inputs(cx, &self.w, |d| {
            let both = biases[d * 2 * width..][..2 * width].split_at(width);
            both.0.iter().zip(both.1).map(|(a, b)| a + b).collect()
        })?;
        let held = call.states(cx, &self.r, 0..width)?;
        let (mut hidden, mut cells) = (e.state_f32(cx, 5)?, e.state_f32(cx, 6)?);
        let mut all = vec![0.0; e.steps * batch * e.directions * n];
        for (d, (_, reverse)) in self.node.directions.iter().enumerate() {
            let rows = held.direction(d);
            let peepholes = peepholes.get(d * 3 * n..(d + 1) * 3 * n).unwrap_or(&[]);
            let (hidden, cells) =
                (&mut hidden[d * batch * n..][..batch * n], &mut cells[d * batch * n..][..batch * n]);
            for step in 0..e.steps {
                let time = if *reverse { e.steps - 1 - step } else { step };
                let gates = &mut inputs.parts[d][time * batch * width..][..batch * width];
                call.step(cx, hidden, rows, width, Start::Out, (gates, width))?;
                for b in 0..batch {
                    let (cell, hidden) = (&mut cells[b * n..][..n], &mut hidden[b * n..][..n]);
                    cell::lstm(self.isa, &gates[b * width..][..width], peepholes, cell, hidden);
                }
                let at = e.all_at(time, d, 0);
                all[at..at + batch * n].iter_mut().zip(&*hidden).for_each(|(a, &h)| *a = h);
            }
        }
        e.finish_f32(cx, &all, &[&hidden, &cells])
    }
}
