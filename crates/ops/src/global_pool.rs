//! Pools over whole planes.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{KernelError, RunCx};

use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::onnx::max_pool::split;
use crate::real::Real;
use crate::real::num::Wide;

/// One number from the numbers of each plane.
pub(crate) fn run(
    cx: &mut RunCx<'_>,
    f: impl Fn(&mut dyn Iterator<Item = f64>, usize) -> f64,
) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => pool::<T>(cx, f),
        _ => Err(wrong_type(cx, 0, "real numbers")))
}

fn pool<T: Real>(
    cx: &mut RunCx<'_>,
    f: impl Fn(&mut dyn Iterator<Item = f64>, usize) -> f64,
) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let (_, spatial) = split(x.shape())?;
    let plane: usize = spatial.iter().product();
    let shape: Shape = x.shape()[..2].iter().copied().chain(spatial.iter().map(|_| 1)).collect();
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let planes = x.as_slice::<T>()?.chunks_exact(plane.max(1));
    let mut watch = cx.cancel().watch();
    for (to, x) in out.elements_mut::<T>().iter_mut().zip(planes) {
        watch.pass(plane)?;
        let value = f(&mut x.iter().map(|v| v.widen().to_f64()), plane);
        *to = T::narrow(T::Wide::from_f64(value));
    }
    cx.set(0, out.freeze());
    Ok(())
}
