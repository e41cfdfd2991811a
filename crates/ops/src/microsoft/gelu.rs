//! `Gelu`: `x` times the normal distribution at `x`.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::reals::{input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "Gelu",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(crate::elementwise::Plain(|cx: &mut RunCx<'_>| -> Result<(), KernelError> {
        let (dtype, shape, mut x) = input(cx, 0)?;
        x.iter_mut().for_each(|x| *x = crate::gelu::exact(*x));
        let out = written(cx, dtype, &shape, &x)?;
        cx.set(0, out);
        Ok(())
    })))
}
