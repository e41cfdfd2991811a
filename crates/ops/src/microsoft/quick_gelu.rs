//! `QuickGelu`: `x * sigmoid(alpha * x)`.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::reals::{input, written};
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QuickGelu",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QuickGelu {
    alpha: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha"])?;
    Ok(Box::new(QuickGelu { alpha: f64::from(cx.node.attributes.float_or("alpha", 1.702)?) }))
}

impl Kernel for QuickGelu {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, shape, mut x) = input(cx, 0)?;
        spread::pieces(cx.cancel(), &mut x, |_, x| {
            x.iter_mut().for_each(|x| *x = *x / (1.0 + (-self.alpha * *x).exp()));
        })?;
        let out = written(cx, dtype, &shape, &x)?;
        cx.set(0, out);
        Ok(())
    }
}
