//! Recurrent layers of FLOAT: the inputs' products for all steps at once, then a product with the state for each step.

mod cell;
mod gru;
mod lstm;

use heirloom_mem::DType;
use heirloom_ops::recurrent::{Activation, Extents, Recurrent};
use heirloom_runtime::{BuildCx, KernelError, PrepareCx, RunCx};
use heirloom_types::Value;

pub(crate) use gru::SPEC as GRU;
pub(crate) use lstm::SPEC as LSTM;

use crate::fallback::{are_float, may_be_float};
use crate::gemm::{Product, Right, Start, Transposed, panel_floats};
use crate::panels::{Held, Panels};
use heirloom_simd::Isa;

/// Whether these kernels compute the node: the usual activations, nothing clipped.
fn usual(cx: &BuildCx<'_>, defaults: &[Activation]) -> bool {
    cx.plain_inputs()
        && may_be_float(cx, 0)
        && Recurrent::parse(cx, defaults).is_ok_and(|node| {
            let same = |(functions, _): &(Vec<Activation>, bool)| functions == defaults;
            node.clip.is_none() && !node.batch_first && node.directions.iter().all(same)
        })
}

/// [directions, rows, columns] of a constant FLOAT input.
fn constant_cube(cx: &PrepareCx<'_>, index: usize) -> Option<[usize; 3]> {
    match cx.constant(index) {
        Some(Value::Tensor(t)) if t.dtype() == DType::Float && !t.is_empty() => t.shape().try_into().ok(),
        _ => None,
    }
}

/// The parts of the states' gates that the inputs make.
struct Inputs {
    /// [directions][steps * batch, gates * hidden]
    parts: Vec<Vec<f32>>,
}

/// What one call has in common for LSTM and GRU; `None` where the portable kernel takes it.
struct Call {
    isa: Isa,
    extents: Extents,
    /// Elements of a gate's row.
    width: usize,
}

impl Call {
    fn new(cx: &RunCx<'_>, node: &Recurrent, gates: usize, isa: Isa) -> Result<Option<Call>, KernelError> {
        if !are_float(cx, [0, 1, 2, 3, 5, 6, 7]) {
            return Ok(None);
        }
        let (w, r) = (cx.tensor(1)?.shape(), cx.tensor(2)?.shape());
        let extents = Extents::new(cx, node, gates, w, r)?;
        let whole = extents.lengths.iter().all(|&length| length == extents.steps);
        let sizes = [extents.steps, extents.batch, extents.input, extents.hidden];
        if !whole || sizes.contains(&0) {
            return Ok(None);
        }
        let width = gates * extents.hidden;
        Ok(Some(Call { isa, extents, width }))
    }

    /// The products of all inputs with W, and the biases of both sides where `both` says so, else the inputs' alone.
    fn inputs(
        &self,
        cx: &RunCx<'_>,
        panels: &Panels,
        bias: impl Fn(usize) -> Vec<f32>,
    ) -> Result<Inputs, KernelError> {
        let Extents { steps, batch, input, directions, .. } = self.extents;
        let (x, w) = (cx.dense(0)?, cx.dense(1)?);
        let w = w.as_slice::<f32>()?;
        let size = self.width * input;
        let held = panels.get(cx, directions, (input, self.width), |d| {
            Box::new(Transposed { data: &w[d * size..][..size], stride: input })
        })?;
        let each = panel_floats(input, self.width);
        let mut parts = Vec::with_capacity(directions);
        for d in 0..directions {
            let mut part = vec![0.0; steps * batch * self.width];
            let bias = bias(d);
            let product = Product {
                isa: self.isa,
                m: steps * batch,
                n: self.width,
                k: input,
                a: x.as_slice()?,
                lda: input,
                b: Right::Packed(&held.floats()[d * each..][..each]),
                start: Start::Column(&bias),
                ldo: self.width,
            };
            product.run(&mut part, cx.team(), cx.cancel())?;
            parts.push(part);
        }
        Ok(Inputs { parts })
    }

    /// Rows `rows` of each direction's R.
    fn states(
        &self,
        cx: &RunCx<'_>,
        panels: &Panels,
        rows: std::ops::Range<usize>,
    ) -> Result<States, KernelError> {
        let hidden = self.extents.hidden;
        let r = cx.dense(2)?;
        let size = self.width * hidden;
        let r = r.as_slice::<f32>()?;
        let held = panels.get(cx, self.extents.directions, (hidden, rows.len()), |d| {
            Box::new(Transposed {
                data: &r[d * size + rows.start * hidden..][..rows.len() * hidden],
                stride: hidden,
            })
        })?;
        Ok(States { held, hidden, count: rows.len() })
    }

    /// Adds (or sets) the product of states [batch, hidden] with `n` columns of one direction's R.
    fn step(
        &self,
        cx: &RunCx<'_>,
        states: &[f32],
        b: Right<'_>,
        n: usize,
        start: Start<'_>,
        (out, ldo): (&mut [f32], usize),
    ) -> Result<(), KernelError> {
        let Extents { batch, hidden, .. } = self.extents;
        let product =
            Product { isa: self.isa, m: batch, n, k: hidden, a: states, lda: hidden, b, start, ldo };
        Ok(product.run(out, cx.team(), cx.cancel())?)
    }
}

/// Some rows of each direction's R, in panels whether they are kept or not: sums then have the same order, and what
/// rounds them to 8 bits behind the cell the same steps.
struct States {
    held: Held,
    hidden: usize,
    count: usize,
}

impl States {
    /// The rows of one direction.
    fn direction(&self, d: usize) -> Right<'_> {
        let each = panel_floats(self.hidden, self.count);
        Right::Packed(&self.held.floats()[d * each..][..each])
    }
}
