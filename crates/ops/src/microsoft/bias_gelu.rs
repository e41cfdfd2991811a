//! `BiasGelu`: `Gelu` of the sum of an input and a bias of the last axis.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::reals::{input, misfit, opt_input, written};
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "BiasGelu",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(crate::elementwise::Plain(|cx: &mut RunCx<'_>| -> Result<(), KernelError> {
        let (dtype, shape, mut x) = input(cx, 0)?;
        if let Some((_, bias_shape, bias)) = opt_input(cx, 1)? {
            if bias.is_empty() || bias_shape.last() != shape.last() {
                return Err(misfit(
                    "the bias has an element for each of the last axis",
                    &[&shape, &bias_shape],
                ));
            }
            spread::pieces(cx.cancel(), &mut x, |from, x| {
                x.iter_mut().enumerate().for_each(|(at, v)| *v += bias[(from + at) % bias.len()]);
            })?;
        }
        let mut watch = cx.cancel().watch();
        for x in &mut x {
            watch.pass(8)?;
            *x = crate::gelu::exact(*x);
        }
        let out = written(cx, dtype, &shape, &x)?;
        cx.set(0, out);
        Ok(())
    })))
}
