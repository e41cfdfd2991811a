//! [`PRelu`](https://onnx.ai/onnx/operators/onnx__PRelu.html): negative elements times a slope, which is broadcast to them.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast;
use crate::by_type::by_number;
use crate::elementwise::{Plain, common_type, wrong_type, zip};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "PRelu",
    versions: (6, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 2, crate::attributes::is_number),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(if cx.opset < 7 { Plain(channels) } else { Plain(run) }))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let slope = Shape::from_slice(cx.tensor(1)?.shape());
    with_slope(cx, &slope)
}

/// Before version 7 a slope of several elements has one for each channel, the second axis.
fn channels(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let slope = Shape::from_slice(cx.tensor(1)?.shape());
    let rank = cx.tensor(0)?.shape().len();
    match slope[..] {
        [count] if count > 1 && rank > 2 => {
            let mut along = Shape::from_elem(1, rank - 1);
            along[0] = count;
            with_slope(cx, &along)
        }
        _ => with_slope(cx, &slope),
    }
}

fn with_slope(cx: &mut RunCx<'_>, slope: &[usize]) -> Result<(), KernelError> {
    by_number!(common_type(cx, 2)?, T => {
        let (x, by) = (cx.dense(0)?, cx.dense(1)?);
        let shape = broadcast::shape(&[x.shape(), slope])?;
        let mut out = cx.alloc(x.dtype(), &shape)?;
        let f = |v: T, by: T| {
            let wide = v.up();
            if wide < <T as Numeric>::Wide::ZERO { T::down(wide.times(by.up())) } else { v }
        };
        zip(&mut cx.cancel().watch(), out.elements_mut(), &shape, [x.shape(), slope], x.as_slice::<T>()?, by.as_slice::<T>()?, f)?;
        cx.set(0, out.freeze());
        Ok(())
    }, _ => Err(wrong_type(cx, 0, "numbers")))
}
