//! [`Unique`](https://onnx.ai/onnx/operators/onnx__Unique.html): the different elements, or slices of an axis, with where each
//! stands first, which of them each element is, and how often they occur. NaN is one value, behind all numbers.

use std::cmp::Ordering;

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{
    BuildCx, BuildError, CancelToken, Cancelled, Kernel, KernelError, KernelSpec, RunCx, normalize_axis,
};
use heirloom_types::Value;

use crate::attributes::only;
use crate::by_type::by_number;
use crate::cells::pick;
use crate::elementwise::{bools, set_wanted, wrong_type};
use crate::movement::shape_of;
use crate::scalar::{Numeric, Scalar};
use crate::sorting;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Unique",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Unique {
    axis: Option<i64>,
    sorted: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "sorted"])?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(Unique { axis: attributes.opt_int("axis")?, sorted: attributes.int_or("sorted", 1)? != 0 }))
}

/// Slices of an axis: slice `at` is, for each block, `run` elements from `(block * count + at) * run` on.
struct Slices {
    blocks: usize,
    count: usize,
    run: usize,
}

impl Slices {
    fn elements(&self, at: usize) -> impl Iterator<Item = usize> {
        let (count, run) = (self.count, self.run);
        (0..self.blocks).flat_map(move |block| {
            let start = (block * count + at) * run;
            start..start + run
        })
    }

    fn order(&self, element: &dyn Fn(usize, usize) -> Ordering, a: usize, b: usize) -> Ordering {
        let pairs = self.elements(a).zip(self.elements(b));
        pairs.map(|(a, b)| element(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl Kernel for Unique {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let (mut shape, axis) = match self.axis {
            Some(axis) => (from.clone(), normalize_axis(axis, from.len())?),
            None => (Shape::from_slice(&[from.iter().product()]), 0),
        };
        let slices = Slices {
            blocks: shape[..axis].iter().product(),
            count: shape[axis],
            run: shape[axis + 1..].iter().product(),
        };
        let groups = with_order(cx, |element| groups(cx.cancel(), &slices, element, self.sorted))??;
        shape[axis] = groups.first.len();
        let starts: Vec<usize> = (0..slices.blocks)
            .flat_map(|block| groups.first.iter().map(move |at| (block, *at)))
            .map(|(block, at)| (block * slices.count + at) * slices.run)
            .collect();
        let value = pick(cx, 0, &shape, &starts, slices.run)?;
        cx.set(0, value);
        let list = |places: Vec<usize>| -> Result<Tensor, KernelError> {
            Ok(Tensor::from_vec(&[places.len()], places.into_iter().map(|v| v as i64).collect())?)
        };
        set_wanted(cx, 1, list(groups.first)?);
        set_wanted(cx, 2, list(groups.which)?);
        set_wanted(cx, 3, list(groups.counts)?);
        Ok(())
    }
}

/// Equal slices together.
struct Groups {
    /// Where each stands first.
    first: Vec<usize>,
    /// The group of each slice.
    which: Vec<usize>,
    counts: Vec<usize>,
}

fn groups(
    cancel: &CancelToken,
    slices: &Slices,
    element: &dyn Fn(usize, usize) -> Ordering,
    sorted: bool,
) -> Result<Groups, Cancelled> {
    let mut watch = cancel.watch();
    let mut order: Vec<usize> = (0..slices.count).collect();
    sorting::stable(&mut watch, &mut order, |&a, &b| slices.order(element, a, b))?;
    let mut members: Vec<&[usize]> = order.chunk_by(|&a, &b| slices.order(element, a, b).is_eq()).collect();
    cancel.check()?;
    if !sorted {
        // The sort is stable: the first member is the one that stands first.
        sorting::stable(&mut watch, &mut members, |a, b| a[0].cmp(&b[0]))?;
    }
    let mut which = vec![0; slices.count];
    for (group, members) in members.iter().enumerate() {
        watch.pass(members.len())?;
        members.iter().for_each(|&at| which[at] = group);
    }
    Ok(Groups {
        first: members.iter().map(|members| members[0]).collect(),
        which,
        counts: members.iter().map(|members| members.len()).collect(),
    })
}

/// Calls `f` with the order of input 0's elements, by their places.
fn with_order<R>(
    cx: &RunCx<'_>,
    f: impl FnOnce(&dyn Fn(usize, usize) -> Ordering) -> R,
) -> Result<R, KernelError> {
    if let Some(Value::Strings(strings)) = cx.value(0) {
        return Ok(f(&|a, b| strings.elements[a].cmp(&strings.elements[b])));
    }
    let input = cx.dense(0)?;
    if input.dtype() == DType::Bool {
        let bytes = bools(&input, 0)?;
        return Ok(f(&|a, b| bytes[a].cmp(&bytes[b])));
    }
    by_number!(input.dtype(), T => {
        let elements = input.as_slice::<T>()?;
        Ok(f(&|a, b| elements[a].up().order(elements[b].up())))
    }, _ => Err(wrong_type(cx, 0, "numbers, BOOL or strings")))
}
