//! [`ReduceMean`](https://onnx.ai/onnx/operators/onnx__ReduceMean.html): the mean over some axes, by default all.

use heirloom_mem::Element;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::by_type::{by_real, by_type};
use crate::elementwise::wrong_type;
use crate::reduce::{Axes, Plan, count, gather};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ReduceMean",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ReduceMean(Axes);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(ReduceMean(Axes::build(cx, 18)?)))
}

impl Kernel for ReduceMean {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let plan = self.0.plan(cx)?;
        by_real!(cx.tensor(0)?.dtype(), T => return reals::<T>(cx, &plan), _ => {});
        by_type!(cx.tensor(0)?.dtype(), [i64, i32, u32, u64, i16, i8, u16, u8], T => integers::<T>(cx, &plan),
            _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn reals<T: Numeric>(cx: &mut RunCx<'_>, plan: &Plan) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let push = |sum: T::Wide, v: T, _| sum.plus(v.up());
    let sums = gather(cx.cancel(), plan, input.as_slice::<T>()?, T::Wide::ZERO, push, T::Wide::plus)?;
    let count = count(plan) as f64;
    let mut out = cx.alloc(T::DTYPE, &plan.result)?;
    for (o, sum) in out.elements_mut::<T>().iter_mut().zip(sums) {
        *o = T::down(T::Wide::from_f64(sum.to_f64() / count));
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// Integers are summed without overflow; the mean is cut off toward zero.
fn integers<T: Element + TryFrom<i128>>(cx: &mut RunCx<'_>, plan: &Plan) -> Result<(), KernelError>
where
    i128: From<T>,
{
    let input = cx.dense(0)?;
    let push = |sum: i128, v: T, _| sum + i128::from(v);
    let sums = gather(cx.cancel(), plan, input.as_slice::<T>()?, 0, push, |a, b| a + b)?;
    let count = count(plan).max(1) as i128;
    let mut out = cx.alloc(T::DTYPE, &plan.result)?;
    for (o, sum) in out.elements_mut::<T>().iter_mut().zip(sums) {
        *o = T::try_from(sum / count).unwrap_or_default();
    }
    cx.set(0, out.freeze());
    Ok(())
}
