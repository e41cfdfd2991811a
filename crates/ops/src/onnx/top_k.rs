//! [`TopK`](https://onnx.ai/onnx/operators/onnx__TopK.html): the k greatest or smallest elements along an axis and where they
//! stand; of equal ones those in front.

use std::cmp::Ordering;

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

use crate::attributes::only;
use crate::axis::Along;
use crate::by_type::by_number;
use crate::elementwise::{set_wanted, wrong_type};
use crate::integers;
use crate::scalar::{Numeric, Scalar};
use crate::sorting;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "TopK",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_number),
    build,
};

struct TopK {
    axis: i64,
    largest: bool,
    sorted: bool,
    /// Before version 10 an attribute.
    k: Option<i64>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..10 => &["axis", "k"],
            10 => &["axis"],
            _ => &["axis", "largest", "sorted"],
        },
    )?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(TopK {
        axis: attributes.int_or("axis", -1)?,
        largest: attributes.int_or("largest", 1)? != 0,
        sorted: attributes.int_or("sorted", 1)? != 0,
        k: if cx.opset < 10 { Some(attributes.int("k")?) } else { None },
    }))
}

impl Kernel for TopK {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_number!(cx.tensor(0)?.dtype(), T => self.top::<T>(cx), _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

impl TopK {
    fn top<T: Numeric>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let value = match self.k {
            Some(k) => k,
            None => integers::scalar(cx, 1, "k")?,
        };
        let input = cx.dense(0)?;
        let along = Along::new(input.shape(), self.axis)?;
        let high = i64::try_from(along.count).unwrap_or(i64::MAX);
        let k = usize::try_from(value).ok().filter(|&k| k <= along.count);
        let k = k.ok_or(KernelError::Range { what: "k", value, low: 0, high })?;
        let mut shape = Shape::from_slice(input.shape());
        shape[normalize_axis(self.axis, input.shape().len())?] = k;
        let mut values = cx.alloc(T::DTYPE, &shape)?;
        let mut places = cx.alloc(DType::Int64, &shape)?;
        let from = input.as_slice::<T>()?;
        let (to, at) = (values.elements_mut::<T>(), places.elements_mut::<i64>());
        let inner = along.inner;
        let mut order: Vec<usize> = Vec::with_capacity(along.count);
        let mut watch = cx.cancel().watch();
        for (line, first) in along.lines().enumerate().filter(|_| k > 0) {
            let element = |place: usize| from[first + place * inner].up();
            let before = |&a: &usize, &b: &usize| -> Ordering {
                let order = element(a).order(element(b));
                (if self.largest { order.reverse() } else { order }).then(a.cmp(&b))
            };
            sorting::first(&mut watch, &mut order, (k, along.count), before)?;
            if self.sorted {
                sorting::stable(&mut watch, &mut order, before)?;
            } else {
                sorting::stable(&mut watch, &mut order, usize::cmp)?;
            }
            watch.pass(k)?;
            let start = line / inner * k * inner + line % inner;
            for (rank, &place) in order.iter().enumerate() {
                to[start + rank * inner] = from[first + place * inner];
                at[start + rank * inner] = place as i64;
            }
        }
        cx.set(0, values.freeze());
        set_wanted(cx, 1, places.freeze());
        Ok(())
    }
}
