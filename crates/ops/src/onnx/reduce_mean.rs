//! [`ReduceMean`](https://onnx.ai/onnx/operators/onnx__ReduceMean.html): the mean over some axes, by default all.

use half::{bf16, f16};
use heirloom_mem::{Element, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast::Walk;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{self, Ints};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ReduceMean",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ReduceMean {
    /// Before version 18 the axes are an attribute.
    axes: Option<Ints>,
    keep: bool,
    noop_without_axes: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 18 { &["axes", "keepdims"] } else { &["keepdims", "noop_with_empty_axes"] })?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(ReduceMean {
        axes: attributes.opt_ints("axes")?.map(Ints::from_slice),
        keep: attributes.int_or("keepdims", 1)? != 0,
        noop_without_axes: attributes.int_or("noop_with_empty_axes", 0)? != 0,
    }))
}

impl Kernel for ReduceMean {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = Shape::from_slice(cx.tensor(0)?.shape());
        let axes = match &self.axes {
            Some(axes) => Some(axes.clone()),
            None => integers::opt_list(cx, 1)?,
        };
        let axes = match axes.filter(|axes| !axes.is_empty()) {
            Some(axes) => integers::axes(&axes, shape.len())?,
            None if self.noop_without_axes => {
                let same = cx.tensor(0)?.clone();
                cx.set(0, same);
                return Ok(());
            }
            None => (0..shape.len()).collect(),
        };
        let kept: Shape =
            shape.iter().enumerate().map(|(axis, &d)| if axes.contains(&axis) { 1 } else { d }).collect();
        let result: Shape = match self.keep {
            true => kept.clone(),
            false => {
                shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &d)| d).collect()
            }
        };
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => return reals::<T>(cx, &shape, &kept, &result), _ => {});
        by_type!(cx.tensor(0)?.dtype(), [i64, i32, u32, u64, i16, i8, u16, u8], T => integers::<T>(cx, &shape, &kept, &result),
            _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn reals<T: Real>(
    cx: &mut RunCx<'_>,
    shape: &[usize],
    kept: &[usize],
    result: &[usize],
) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let from = input.as_slice::<T>()?;
    let mut out = cx.alloc(T::DTYPE, result)?;
    let groups = out.elements_mut::<T>().len();
    let mut sums = vec![T::Wide::default(); groups];
    let walk = Walk::new(shape, [kept]);
    walk.for_each(|at, [to]| {
        for (k, v) in from[at..at + walk.run].iter().enumerate() {
            sums[to + k * walk.step[0]] += v.widen();
        }
    });
    let count = T::Wide::from_f64(from.len() as f64 / groups.max(1) as f64);
    out.elements_mut::<T>().iter_mut().zip(sums).for_each(|(o, sum)| *o = T::narrow(sum / count));
    cx.set(0, out.freeze());
    Ok(())
}

fn integers<T: Element + TryFrom<i128>>(
    cx: &mut RunCx<'_>,
    shape: &[usize],
    kept: &[usize],
    result: &[usize],
) -> Result<(), KernelError>
where
    i128: From<T>,
{
    let input = cx.dense(0)?;
    let from = input.as_slice::<T>()?;
    let mut out = cx.alloc(T::DTYPE, result)?;
    let groups = out.elements_mut::<T>().len();
    let mut sums = vec![0i128; groups];
    let walk = Walk::new(shape, [kept]);
    walk.for_each(|at, [to]| {
        for (k, &v) in from[at..at + walk.run].iter().enumerate() {
            sums[to + k * walk.step[0]] += i128::from(v);
        }
    });
    let count = (from.len() / groups.max(1)).max(1) as i128;
    for (o, sum) in out.elements_mut::<T>().iter_mut().zip(sums) {
        *o = T::try_from(sum / count).unwrap_or_default();
    }
    cx.set(0, out.freeze());
    Ok(())
}
