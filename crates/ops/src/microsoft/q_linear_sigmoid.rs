//! `QLinearSigmoid`: the sigmoid of a quantized tensor, quantized.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::q_linear::{read, write};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearSigmoid",
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
    let (shape, mut values) = read(cx, 0)?;
    values.iter_mut().for_each(|v| *v = 1.0 / (1.0 + (-*v).exp()));
    write(cx, 3, cx.tensor(0)?.dtype(), &shape, &values)
}
