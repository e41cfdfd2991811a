//! [`Softmax`](https://onnx.ai/onnx/operators/onnx__Softmax.html): `exp(x) / sum(exp(x))` along an axis; before version 13
//! over all axes from `axis` on.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Softmax",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Softmax {
    axis: i64,
    /// Before version 13: the input counts as a matrix.
    flat: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    let flat = cx.opset < 13;
    let axis = cx.node.attributes.int_or("axis", if flat { 1 } else { -1 })?;
    Ok(Box::new(Softmax { axis, flat }))
}

impl Kernel for Softmax {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => softmax::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn softmax<T: Real>(cx: &mut RunCx<'_>, node: &Softmax) -> Result<(), KernelError> {
    let shape = Shape::from_slice(cx.tensor(0)?.shape());
    // A scalar is a vector of one element.
    let axis = heirloom_runtime::normalize_axis(node.axis, shape.len().max(1))?;
    let inner: usize = if node.flat { 1 } else { shape.iter().skip(axis + 1).product() };
    let count: usize =
        if node.flat { shape[axis..].iter().product() } else { shape.get(axis).copied().unwrap_or(1) };
    let mut out = match cx.take_unique(0) {
        Some(out) => out,
        None => {
            let input = cx.dense(0)?;
            let mut out = cx.alloc(T::DTYPE, &shape)?;
            out.elements_mut::<T>().iter_mut().zip(input.as_slice::<T>()?).for_each(|(o, &v)| *o = v);
            out
        }
    };
    for block in out.elements_mut::<T>().chunks_exact_mut((count * inner).max(1)) {
        for lane in 0..inner {
            in_place(block, lane, inner);
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// Elements `first`, `first + step`, … of `values`.
fn in_place<T: Real>(values: &mut [T], first: usize, step: usize) {
    let lane = || (first..values.len()).step_by(step);
    let mut greatest = values[first].widen();
    lane().for_each(|at| greatest = greatest.larger(values[at].widen()));
    let mut sum = T::Wide::default();
    lane().for_each(|at| sum += (values[at].widen() - greatest).exp());
    for at in (first..values.len()).step_by(step) {
        values[at] = T::narrow((values[at].widen() - greatest).exp() / sum);
    }
}
