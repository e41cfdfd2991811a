//! `QLinearAdd`: the sum of two quantized tensors, broadcast, quantized.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast;
use crate::elementwise::{Plain, zip};
use crate::q_linear::{read, write};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearAdd",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let ((a_shape, a), (b_shape, b)) = (read(cx, 0)?, read(cx, 3)?);
    let shape = broadcast::shape(&[&a_shape, &b_shape])?;
    let mut values = vec![0.0; shape.iter().product()];
    zip(&mut cx.cancel().watch(), &mut values, &shape, [&a_shape, &b_shape], &a, &b, |x: f32, y: f32| x + y)?;
    write(cx, 6, cx.tensor(0)?.dtype(), &shape, &values)
}
