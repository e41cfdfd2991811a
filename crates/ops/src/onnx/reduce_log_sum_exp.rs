//! [`ReduceLogSumExp`](https://onnx.ai/onnx/operators/onnx__ReduceLogSumExp.html): `ln(sum(exp(x)))` over some axes, by
//! default all, without overflow.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::by_type::by_number;
use crate::elementwise::wrong_type;
use crate::reduce::{Axes, Plan, gather};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ReduceLogSumExp",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ReduceLogSumExp(Axes);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(ReduceLogSumExp(Axes::build(cx, 18)?)))
}

impl Kernel for ReduceLogSumExp {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let plan = self.0.plan(cx)?;
        by_number!(cx.tensor(0)?.dtype(), T => run::<T>(cx, &plan), _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn run<T: Numeric>(cx: &mut RunCx<'_>, plan: &Plan) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let from = input.as_slice::<T>()?;
    let greatest = |a: f64, v: T, _| a.larger(v.up().to_f64());
    // Infinities are no measure: what is left of them then is what the formula gives.
    let greatest: Vec<f64> = gather(cx.cancel(), plan, from, f64::NEG_INFINITY, greatest, f64::larger)?
        .into_iter()
        .map(|v| if v.is_finite() { v } else { 0.0 })
        .collect();
    let push = |sum: f64, v: T, group: usize| sum + (v.up().to_f64() - greatest[group]).exp();
    let sums = gather(cx.cancel(), plan, from, 0.0, push, |a, b| a + b)?;
    let mut out = cx.alloc(T::DTYPE, &plan.result)?;
    for ((o, sum), greatest) in out.elements_mut::<T>().iter_mut().zip(sums).zip(&greatest) {
        *o = T::down(T::Wide::from_f64(sum.ln() + greatest));
    }
    cx.set(0, out.freeze());
    Ok(())
}
