//! [`Clip`](https://onnx.ai/onnx/operators/onnx__Clip.html): each element held between a least and a greatest value.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_number;
use crate::elementwise::{unary, wrong_type};
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Clip",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_number),
    build,
};

struct Clip {
    /// Before version 11 the bounds are attributes.
    bounds: Option<(f32, f32)>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let attributes = &cx.node.attributes;
    if cx.opset >= 11 {
        only(cx, &[])?;
        return Ok(Box::new(Clip { bounds: None }));
    }
    only(cx, &["min", "max"])?;
    let bounds = (attributes.float_or("min", f32::MIN)?, attributes.float_or("max", f32::MAX)?);
    Ok(Box::new(Clip { bounds: Some(bounds) }))
}

impl Kernel for Clip {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_number!(cx.tensor(0)?.dtype(), T => clip::<T>(cx, self.bounds), _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn clip<T: Numeric>(cx: &mut RunCx<'_>, bounds: Option<(f32, f32)>) -> Result<(), KernelError> {
    let (low, high) = match bounds {
        Some((low, high)) => (T::Wide::from_f64(low.into()), T::Wide::from_f64(high.into())),
        None => {
            (bound::<T>(cx, 1)?.unwrap_or(T::Wide::LOWEST), bound::<T>(cx, 2)?.unwrap_or(T::Wide::GREATEST))
        }
    };
    unary(cx, |v: T| {
        let wide = v.up();
        let wide = if wide < low { low } else { wide };
        T::down(if wide > high { high } else { wide })
    })
}

fn bound<T: Numeric>(cx: &RunCx<'_>, index: usize) -> Result<Option<T::Wide>, KernelError> {
    if cx.opt_tensor(index)?.is_none() {
        return Ok(None);
    }
    match cx.dense(index)?.as_slice::<T>()? {
        [value] => Ok(Some(value.up())),
        list => Err(KernelError::Other(format!("a bound has one element, not {}", list.len()))),
    }
}
