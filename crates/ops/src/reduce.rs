//! Reductions over axes, declared by how elements are gathered.

use heirloom_mem::{DType, Element, Shape};
use heirloom_runtime::{BuildCx, BuildError, CancelToken, Cancelled, KernelError, RunCx};

use crate::attributes::only;
use crate::broadcast::Walk;
use crate::integers::{self, Ints};
use crate::run::hot;
use crate::scalar::Scalar;

/// Which axes a node reduces, and whether they stay as extents of 1.
pub(crate) struct Axes {
    /// Where the axes are an attribute.
    list: Option<Ints>,
    keep: bool,
    noop_without_axes: bool,
}

/// The shapes of one reduction.
pub(crate) struct Plan {
    /// The input's.
    pub(crate) from: Shape,
    /// With 1 in place of each reduced axis.
    pub(crate) kept: Shape,
    /// The result's.
    pub(crate) result: Shape,
}

impl Axes {
    /// The axes of a node that takes them as an input from version `input_since` on.
    pub(crate) fn build(cx: &BuildCx<'_>, input_since: i64) -> Result<Axes, BuildError> {
        let input = cx.opset >= input_since;
        only(cx, if input { &["keepdims", "noop_with_empty_axes"] } else { &["axes", "keepdims"] })?;
        let attributes = &cx.node.attributes;
        Ok(Axes {
            list: attributes.opt_ints("axes")?.map(Ints::from_slice),
            keep: attributes.int_or("keepdims", 1)? != 0,
            noop_without_axes: attributes.int_or("noop_with_empty_axes", 0)? != 0,
        })
    }

    /// The shapes for the inputs of this call.
    pub(crate) fn plan(&self, cx: &RunCx<'_>) -> Result<Plan, KernelError> {
        let from = Shape::from_slice(cx.tensor(0)?.shape());
        let list = match &self.list {
            Some(list) => Some(list.clone()),
            None => integers::opt_list(cx, 1)?,
        };
        let axes = match list.filter(|axes| !axes.is_empty()) {
            Some(axes) => integers::axes(&axes, from.len())?,
            None if self.noop_without_axes => integers::Places::new(),
            None => (0..from.len()).collect(),
        };
        let kept: Shape =
            from.iter().enumerate().map(|(axis, &d)| if axes.contains(&axis) { 1 } else { d }).collect();
        let left = from.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &d)| d);
        let result = if self.keep { kept.clone() } else { left.collect() };
        Ok(Plan { from, kept, result })
    }
}

/// Sums that run side by side within a row, so that they take one register.
const LANES: usize = 16;

/// For each element of the kept shape, its elements gathered with `push` from `start` on; partial results are joined
/// with `join`. `push` is told the group.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn gather<E: Element, A: Copy>(
    cancel: &CancelToken,
    plan: &Plan,
    from: &[E],
    start: A,
    push: impl Fn(A, E, usize) -> A,
    join: impl Fn(A, A) -> A,
) -> Result<Vec<A>, Cancelled> {
    if const { hot(E::DTYPE) } {
        return gather_with(cancel, plan, from, start, &push, &join);
    }
    gather_with::<E, A, dyn Fn(A, E, usize) -> A>(cancel, plan, from, start, &push, &join)
}

fn gather_with<E: Copy, A: Copy, P: Fn(A, E, usize) -> A + ?Sized>(
    cancel: &CancelToken,
    plan: &Plan,
    from: &[E],
    start: A,
    push: &P,
    join: &dyn Fn(A, A) -> A,
) -> Result<Vec<A>, Cancelled> {
    let mut groups = vec![start; plan.kept.iter().product()];
    let walk = Walk::new(&plan.from, [&plan.kept]);
    walk.pieces(&mut cancel.watch(), |at, [group], length| {
        let run = &from[at..at + length];
        if walk.step[0] == 1 {
            let groups = &mut groups[group..group + length];
            groups.iter_mut().zip(run).enumerate().for_each(|(k, (a, &v))| *a = push(*a, v, group + k));
        } else if run.len() < LANES {
            groups[group] = run.iter().fold(groups[group], |a, &v| push(a, v, group));
        } else {
            let mut lanes = [start; LANES];
            let (blocks, rest) = run.as_chunks::<LANES>();
            for block in blocks {
                lanes.iter_mut().zip(block).for_each(|(a, &v)| *a = push(*a, v, group));
            }
            lanes.iter_mut().zip(rest).for_each(|(a, &v)| *a = push(*a, v, group));
            groups[group] = lanes.into_iter().fold(groups[group], join);
        }
    })?;
    Ok(groups)
}

/// How many elements fall into each group.
pub(crate) fn count(plan: &Plan) -> usize {
    plan.from.iter().zip(&plan.kept).filter(|(_, kept)| **kept == 1).map(|(d, _)| d).product()
}

/// BOOL as bytes of 0 and 1.
pub(crate) fn bytes(
    cx: &mut RunCx<'_>,
    plan: &Plan,
    start: u8,
    join: impl Fn(u8, u8) -> u8,
) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let groups = gather(
        cx.cancel(),
        plan,
        input.dense_bytes().unwrap_or(&[]),
        start,
        |a, v, _| join(a, u8::from(v != 0)),
        &join,
    )?;
    let mut out = cx.alloc(DType::Bool, &plan.result)?;
    out.bytes_mut().iter_mut().zip(groups).for_each(|(o, group)| *o = group);
    cx.set(0, out.freeze());
    Ok(())
}

/// The logarithm, root or mean of a number that may be an integer.
pub(crate) fn through_f64<A: Scalar>(value: A, f: impl Fn(f64) -> f64) -> A {
    A::from_f64(f(value.to_f64()))
}

/// The types that reductions take; BOOL is not for all of them, which the call says.
pub(crate) fn fits(dtype: DType) -> bool {
    crate::attributes::is_number(dtype) || dtype == DType::Bool
}

/// A reduction of numbers. `W` names the type that they are computed in; `finish` is told how many elements there were.
macro_rules! reduction {
    (
        $op:literal, axes are an input since $input:literal,
        start: $start:expr,
        push: $acc:ident, $v:ident => $push:expr,
        join: $a:ident, $b:ident => $join:expr,
        finish: $sum:ident, $count:ident => $finish:expr
        $(, bool: $bool:expr)?
    ) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: (1, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 1, $crate::reduce::fits),
            build,
        };

        struct Node($crate::reduce::Axes);

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            Ok(Box::new(Node($crate::reduce::Axes::build(cx, $input)?)))
        }

        impl Kernel for Node {
            fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
                #[allow(unused_imports)]
                use $crate::scalar::{Numeric, Scalar};
                let plan = self.0.plan(cx)?;
                let dtype = cx.tensor(0)?.dtype();
                $(if dtype == ::heirloom_mem::DType::Bool {
                    let (start, join): (u8, fn(u8, u8) -> u8) = $bool;
                    return $crate::reduce::bytes(cx, &plan, start, join);
                })?
                $crate::by_type::by_number!(dtype, T => {
                    type W = <T as Numeric>::Wide;
                    let input = cx.dense(0)?;
                    let start: W = $start;
                    let push = |$acc: W, v: T, _| {
                        let $v = v.up();
                        $push
                    };
                    let groups =
                        $crate::reduce::gather(cx.cancel(), &plan, input.as_slice::<T>()?, start, push, |$a: W, $b: W| $join)?;
                    let $count = $crate::reduce::count(&plan);
                    let mut out = cx.alloc(dtype, &plan.result)?;
                    out.elements_mut::<T>().iter_mut().zip(groups).for_each(|(o, $sum)| *o = T::down($finish));
                    cx.set(0, out.freeze());
                    Ok(())
                }, _ => Err($crate::elementwise::wrong_type(cx, 0, "numbers")))
            }
        }
    };
}

pub(crate) use reduction;
